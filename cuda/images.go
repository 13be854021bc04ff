package cuda

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"os"
	"path/filepath"

	"github.com/ringtrain/ringtrain/collective/userfiles"
)

// A Cache keeps compiled images in files, so that only the first run compiles. Processes
// may share a directory. The Cache is best effort: corrupt files count as absent, and a
// directory that is not writable keeps nothing. The zero value keeps nothing.
type Cache struct{ dir string }

// NewCache returns a Cache in dir, which is created when the first image is stored.
func NewCache(dir string) Cache { return Cache{dir} }

// UserCache returns the Cache in the directory kernels of userfiles.CacheDir. If there is
// no such directory, it keeps nothing.
func UserCache() Cache {
	dir, err := userfiles.CacheDir()
	if err != nil {
		return Cache{}
	}
	return NewCache(filepath.Join(dir, "kernels"))
}

// imageMagic begins each file. The SHA-256 of the image and the image follow.
const imageMagic = "ringtrain kernels 1\n"

// imageKey names an image by everything that it depends on.
func imageKey(parts ...string) string {
	h := sha256.New()
	for _, part := range parts {
		fmt.Fprintf(h, "%d:%s", len(part), part)
	}
	return hex.EncodeToString(h.Sum(nil))
}

func (c Cache) file(key string) string { return filepath.Join(c.dir, key) }

// get returns the image with the key, if there is an intact one.
func (c Cache) get(key string) (image []byte, ok bool) {
	if c.dir == "" {
		return nil, false
	}
	text, err := os.ReadFile(c.file(key))
	if err != nil {
		return nil, false
	}
	rest, ok := bytes.CutPrefix(text, []byte(imageMagic))
	if !ok || len(rest) < sha256.Size {
		return nil, false
	}
	want, image := rest[:sha256.Size], rest[sha256.Size:]
	got := sha256.Sum256(image)
	return image, bytes.Equal(want, got[:])
}

// put stores the image. A reader sees all of it or nothing: put renames a complete
// temporary file, and the checksum detects a file that a crash has truncated.
func (c Cache) put(key string, image []byte) error {
	if c.dir == "" {
		return nil
	}
	if err := os.MkdirAll(c.dir, 0o755); err != nil {
		return err
	}
	userfiles.Sweep(c.dir, ".new-*")
	f, err := os.CreateTemp(c.dir, ".new-*")
	if err != nil {
		return err
	}
	defer os.Remove(f.Name()) // does nothing after the rename
	sum := sha256.Sum256(image)
	for _, part := range [][]byte{[]byte(imageMagic), sum[:], image} {
		if _, err := f.Write(part); err != nil {
			_ = f.Close()
			return err
		}
	}
	if err := f.Close(); err != nil {
		return err
	}
	return os.Rename(f.Name(), c.file(key))
}
