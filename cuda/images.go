package cuda

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"os"
	"path/filepath"
)

// A Cache keeps compiled images in files, so that only the first run compiles.
// Processes may share a directory. It is never needed: a file that is not whole,
// or not what it says, counts as absent, and a directory that cannot be written
// to keeps nothing. The zero value keeps nothing.
type Cache struct{ dir string }

// NewCache is a Cache in dir, which is made when something is put there.
func NewCache(dir string) Cache { return Cache{dir} }

// UserCache is the Cache in the user's cache directory, under ringtrain/kernels.
// Without such a directory it keeps nothing.
func UserCache() Cache {
	dir, err := os.UserCacheDir()
	if err != nil {
		return Cache{}
	}
	return NewCache(filepath.Join(dir, "ringtrain", "kernels"))
}

// imageMagic begins each file; then come the SHA-256 of the image, and the image.
const imageMagic = "ringtrain kernels 1\n"

// imageKey names an image by all that it depends on.
func imageKey(parts ...string) string {
	h := sha256.New()
	for _, part := range parts {
		fmt.Fprintf(h, "%d:%s", len(part), part)
	}
	return hex.EncodeToString(h.Sum(nil))
}

func (c Cache) file(key string) string { return filepath.Join(c.dir, key) }

// get is the image with the key, if there is a whole one.
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

// put keeps the image. A reader sees all of it or nothing: it is written aside,
// and a file that a crash cut short does not have its own sum.
func (c Cache) put(key string, image []byte) error {
	if c.dir == "" {
		return nil
	}
	if err := os.MkdirAll(c.dir, 0o755); err != nil {
		return err
	}
	f, err := os.CreateTemp(c.dir, ".new-*")
	if err != nil {
		return err
	}
	defer os.Remove(f.Name()) // after the rename there is nothing to remove
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
