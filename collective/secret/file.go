package secret

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"runtime"

	"github.com/ringtrain/ringtrain/collective/errtext"
)

// maxFile is a generous limit for the text of a Key with surrounding space.
const maxFile = 4096

// ErrLoose means that others than the owner can read or change a key file.
var ErrLoose = errors.New("the key may not be secret")

// ReadFile reads a Key from a file. It fails with [ErrLoose] if anybody but the owner can
// read or change the file, and with [ErrNotKey] if the file does not contain a Key.
// Windows does not store permissions in the file mode, so they are not checked there.
func ReadFile(path string) (Key, error) {
	info, err := os.Stat(path) // before opening, because opening a pipe waits
	if err != nil {
		return Key{}, fmt.Errorf("key file %s: %w", path, errtext.Reason(err))
	}
	if !info.Mode().IsRegular() {
		return Key{}, fmt.Errorf("key file %s: not a regular file", path)
	}
	f, err := os.Open(path)
	if err != nil {
		return Key{}, fmt.Errorf("key file %s: %w", path, errtext.Reason(err))
	}
	defer f.Close()
	if info, err = f.Stat(); err != nil {
		return Key{}, fmt.Errorf("key file %s: %w", path, errtext.Reason(err))
	}
	if mode := info.Mode().Perm(); mode&0o077 != 0 && runtime.GOOS != "windows" {
		return Key{}, fmt.Errorf("key file %s: %w: the file is accessible to other users (mode %#o); run chmod 600 %s, and create a new key if it may have been read", path, ErrLoose, mode, path)
	}
	text, err := io.ReadAll(io.LimitReader(f, maxFile))
	if err != nil {
		return Key{}, fmt.Errorf("key file %s: %w", path, errtext.Reason(err))
	}
	k, err := ParseKey(string(text))
	if err != nil {
		return Key{}, fmt.Errorf("key file %s: %w", path, err)
	}
	return k, nil
}

// WriteFile writes a Key to a new file that only its owner can read. If the file exists,
// WriteFile fails with fs.ErrExist and does not change it.
func WriteFile(path string, k Key) error {
	if k.zero() {
		return ErrNotKey
	}
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if errors.Is(err, fs.ErrExist) {
		return fmt.Errorf("key file %s: %w; it is not overwritten, because other machines may use its key; choose another name or delete it first", path, fs.ErrExist)
	}
	if errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("key file %s: the directory does not exist: %w", path, errtext.Reason(err))
	}
	if err != nil {
		return fmt.Errorf("key file %s: %w", path, errtext.Reason(err))
	}
	_, err = io.WriteString(f, k.Text()+"\n")
	err = errors.Join(err, f.Sync(), f.Close())
	if err != nil {
		return errors.Join(fmt.Errorf("key file %s: %w", path, errtext.Reason(err)), os.Remove(path))
	}
	return nil
}
