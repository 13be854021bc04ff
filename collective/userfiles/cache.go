package userfiles

import (
	"os"
	"path/filepath"
)

// EnvCache is the environment variable that names another CacheDir.
const EnvCache = "RINGTRAIN_CACHE_DIR"

// CacheDir returns this user's directory for files that can be made again: the value of
// EnvCache or, if that is empty, DefaultCacheDir. It creates nothing.
func CacheDir() (string, error) {
	if dir := os.Getenv(EnvCache); dir != "" {
		return dir, nil
	}
	return DefaultCacheDir()
}

// DefaultCacheDir returns "ringtrain" in the user's cache directory. The error says why
// there is none.
func DefaultCacheDir() (string, error) {
	dir, err := os.UserCacheDir()
	if err != nil {
		return "", err
	}
	return filepath.Join(dir, "ringtrain"), nil
}
