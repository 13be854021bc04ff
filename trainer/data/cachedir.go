package data

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"

	"github.com/ringtrain/ringtrain/collective/userfiles"
)

// EnvCache is the environment variable in which a launcher passes the Dir of its Cache to
// its workers, so that they use the same files.
const EnvCache = userfiles.EnvCache

// A Cache is this user's directory for files that can be regenerated: datasets, compiled
// kernels, tables.
type Cache struct {
	// Dir is the directory to write to: "ringtrain" in the user's cache directory. If
	// that is not writable, it is a directory in the temporary directory that only this
	// user can access, the same for all processes.
	Dir string
	// Instead is the reason why Dir is not in the user's cache directory; nil if it is.
	Instead error

	user string // the one in the user's cache directory; "" if there is none
}

// OpenCache finds the cache and creates its directory. It fails if no directory
// is usable.
func OpenCache() (Cache, error) {
	c, err := userCache()
	if err == nil && os.Getenv(EnvCache) == "" {
		if err = writable(c.Dir); err == nil {
			return c, nil
		}
	}
	c.Instead = err
	if c.Dir = os.Getenv(EnvCache); c.Dir != "" {
		return c, nil
	}
	c.Dir = temporaryCache()
	if err := makeOwn(c.Dir); err != nil {
		return c, fmt.Errorf("data: no usable cache directory: %w; the fallback failed too: %w", c.Instead, err)
	}
	return c, nil
}

// FindCached returns the path of an existing file in the cache. It creates nothing.
func FindCached(name string) (path string, ok bool) {
	dirs := []string{os.Getenv(EnvCache)}
	if c, err := userCache(); err == nil {
		dirs = append(dirs, c.Dir)
	}
	if dir := temporaryCache(); checkOwn(dir) == nil {
		dirs = append(dirs, dir)
	}
	for _, dir := range dirs {
		if path = filepath.Join(dir, name); dir != "" && exists(path) {
			return path, true
		}
	}
	return "", false
}

// temporaryCache returns the cache directory for a user without a usable cache directory.
func temporaryCache() string {
	return filepath.Join(os.TempDir(), "ringtrain-cache-"+strconv.Itoa(os.Getuid()))
}

// userCache returns the cache in the user's cache directory.
func userCache() (Cache, error) {
	dir, err := userfiles.DefaultCacheDir()
	return Cache{Dir: dir, user: dir}, err
}

// Find returns the path at which to read a file or directory of the cache. If it exists
// in the user's cache directory, that path is returned even if the directory is not
// writable, and instead is nil.
func (c Cache) Find(name string) (path string, instead error) {
	if c.user != "" && c.user != c.Dir {
		if there := filepath.Join(c.user, name); exists(there) {
			return there, nil
		}
	}
	return filepath.Join(c.Dir, name), c.Instead
}

func exists(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}

// writable creates a directory and checks that files can be created in it.
func writable(dir string) error {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	f, err := os.CreateTemp(dir, ".probe-*")
	if err != nil {
		return err
	}
	return errors.Join(f.Close(), os.Remove(f.Name()))
}

// makeOwn creates a directory that only this user can access.
func makeOwn(dir string) error {
	if err := os.Mkdir(dir, 0o700); err != nil && !errors.Is(err, os.ErrExist) {
		return err
	}
	if err := checkOwn(dir); err != nil {
		return err
	}
	return writable(dir)
}

// checkOwn rejects a directory that another user may have created or can access.
func checkOwn(dir string) error {
	info, err := os.Lstat(dir)
	if err != nil {
		return err
	}
	if !info.IsDir() || !userfiles.Own(info, 0o077) {
		return fmt.Errorf("%s must be a directory that only this user can access; remove it, or set XDG_CACHE_HOME", dir)
	}
	return nil
}

// Digits calls the function Digits with this cache.
func (c Cache) Digits(ctx context.Context) (*Set, error) {
	path, _ := c.Find(DigitsName)
	return Digits(ctx, filepath.Dir(path))
}
