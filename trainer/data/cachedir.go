package data

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
)

// EnvCache is the environment variable by which a launcher tells its workers the
// Dir of its Cache, so that they find what it has made.
const EnvCache = "RINGTRAIN_CACHE_DIR"

// A Cache is where this user keeps what can be made again: datasets, compiled
// kernels, tables.
type Cache struct {
	// Dir is for writing: "ringtrain" in the user's cache directory or, where
	// that cannot be written, a directory of this user alone among the temporary
	// files, the same one for all processes.
	Dir string
	// Instead is why Dir is not in the user's cache directory; nil if it is.
	Instead error

	user string // in the user's cache directory; "" if there is none
}

// OpenCache finds the cache, and makes its directory. It fails if there is no
// place for one.
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
		return c, fmt.Errorf("data: no place for a cache: %w; nor in place of it: %w", c.Instead, err)
	}
	return c, nil
}

// FindCached returns where a file of the cache is, if there is one, and makes
// nothing.
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

// temporaryCache is the cache of a user who has no cache directory.
func temporaryCache() string {
	return filepath.Join(os.TempDir(), "ringtrain-cache-"+strconv.Itoa(os.Getuid()))
}

// userCache is the cache in the user's cache directory.
func userCache() (Cache, error) {
	dir, err := os.UserCacheDir()
	if err != nil {
		return Cache{}, err
	}
	dir = filepath.Join(dir, "ringtrain")
	return Cache{Dir: dir, user: dir}, nil
}

// Find returns where a file or directory of the cache is to be read. One that is
// in the user's cache directory is read there, even if nobody can write there, and
// then instead is nil.
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

// writable makes a directory, and a file in it, which it removes.
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

// makeOwn makes a directory that only this user can read and write.
func makeOwn(dir string) error {
	if err := os.Mkdir(dir, 0o700); err != nil && !errors.Is(err, os.ErrExist) {
		return err
	}
	if err := checkOwn(dir); err != nil {
		return err
	}
	return writable(dir)
}

// checkOwn refuses a directory that others may have made, or can write to.
func checkOwn(dir string) error {
	info, err := os.Lstat(dir)
	if err != nil {
		return err
	}
	if !info.IsDir() || !ours(info) {
		return fmt.Errorf("%s is not a directory of this user alone: remove it, or set XDG_CACHE_HOME", dir)
	}
	return nil
}

// Digits is the function Digits with this cache.
func (c Cache) Digits(ctx context.Context) (*Set, error) {
	path, _ := c.Find(DigitsName)
	return Digits(ctx, filepath.Dir(path))
}
