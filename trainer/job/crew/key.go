package crew

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/ringtrain/ringtrain/collective/cluster"
	"github.com/ringtrain/ringtrain/collective/secret"
)

// FindKey returns the path of the key file: named, or the one in the environment if
// that is "". Without either it returns "". It reads the key, so that a mistake shows
// before anything starts; workers read it again.
func FindKey(named string) (string, error) {
	path, from := named, "--key-file"
	if path == "" {
		path, from = os.Getenv(cluster.EnvKeyFile), cluster.EnvKeyFile
	}
	if path == "" {
		return "", nil
	}
	if _, err := secret.ReadFile(path); errors.Is(err, fs.ErrNotExist) {
		return "", fmt.Errorf("%s: %w; make one with ringtrain keygen %s, or copy it from another machine of the job", from, err, path)
	} else if err != nil {
		return "", fmt.Errorf("%s: %w", from, err)
	}
	path, err := filepath.Abs(path)
	if err != nil {
		return "", fmt.Errorf("%s: %w", from, err)
	}
	return path, nil
}
