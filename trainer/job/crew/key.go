package crew

import (
	"fmt"
	"os"
	"path/filepath"

	"github.com/ringtrain/ringtrain/collective/cluster"
	"github.com/ringtrain/ringtrain/collective/secret"
)

// FindKey is the path of the key file that named, or else the environment, names;
// "" for none. It reads the key, so that a mistake shows before anything starts.
// The workers read it themselves.
func FindKey(named string) (string, error) {
	path, from := named, "--key-file"
	if path == "" {
		path, from = os.Getenv(cluster.EnvKeyFile), cluster.EnvKeyFile
	}
	if path == "" {
		return "", nil
	}
	if _, err := secret.ReadFile(path); err != nil {
		return "", fmt.Errorf("%s: %w", from, err)
	}
	path, err := filepath.Abs(path)
	if err != nil {
		return "", fmt.Errorf("%s: %w", from, err)
	}
	return path, nil
}
