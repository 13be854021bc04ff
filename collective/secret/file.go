package secret

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"runtime"
)

// maxFile is more than the text of a Key with space around it has.
const maxFile = 4096

// ErrLoose is what errors.Is finds where others than its owner may read, or
// change, a key file.
var ErrLoose = errors.New("the key is not secret")

// ReadFile reads the Key in a file. It refuses a file that anybody but its
// owner may use ([ErrLoose]; Windows keeps that elsewhere and is not asked),
// and what is not the text of a Key ([ErrNotKey]).
func ReadFile(path string) (Key, error) {
	info, err := os.Stat(path) // before opening, which for a pipe waits
	if err != nil {
		return Key{}, fmt.Errorf("key file %s: %w", path, reason(err))
	}
	if !info.Mode().IsRegular() {
		return Key{}, fmt.Errorf("key file %s: it is not a file", path)
	}
	f, err := os.Open(path)
	if err != nil {
		return Key{}, fmt.Errorf("key file %s: %w", path, reason(err))
	}
	defer f.Close()
	if info, err = f.Stat(); err != nil {
		return Key{}, fmt.Errorf("key file %s: %w", path, reason(err))
	}
	if mode := info.Mode().Perm(); mode&0o077 != 0 && runtime.GOOS != "windows" {
		return Key{}, fmt.Errorf("key file %s: %w: others than its owner may use the file (mode %#o); chmod 600 %s, and make a new key if somebody may have read it", path, ErrLoose, mode, path)
	}
	text, err := io.ReadAll(io.LimitReader(f, maxFile))
	if err != nil {
		return Key{}, fmt.Errorf("key file %s: %w", path, reason(err))
	}
	k, err := ParseKey(string(text))
	if err != nil {
		return Key{}, fmt.Errorf("key file %s: %w", path, err)
	}
	return k, nil
}

// WriteFile writes a Key to a new file that only its owner may read. A file
// that is there already is fs.ErrExist and stays as it is.
func WriteFile(path string, k Key) error {
	if k.zero() {
		return ErrNotKey
	}
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if errors.Is(err, fs.ErrExist) {
		return fmt.Errorf("key file %s: it is there already; whoever has its key needs it, so it is not overwritten: %w", path, fs.ErrExist)
	}
	if err != nil {
		return fmt.Errorf("key file %s: %w", path, reason(err))
	}
	_, err = io.WriteString(f, k.Text()+"\n")
	err = errors.Join(err, f.Sync(), f.Close())
	if err != nil {
		return errors.Join(fmt.Errorf("key file %s: %w", path, reason(err)), os.Remove(path))
	}
	return nil
}

// reason is err without the path, which the caller says.
func reason(err error) error {
	var at *fs.PathError
	if errors.As(err, &at) {
		return at.Err
	}
	return err
}
