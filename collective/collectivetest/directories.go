package collectivetest

import (
	"errors"
	"fmt"
	"os"
	"testing"
)

// InOwnDirectories makes tests leave nothing in the user's directories: Run gives this process,
// and those that it starts, a directory of their own for what jobs leave outside their output
// directories. That is flight records, the list of running jobs, and what they have measured:
// the user's jobs must not rely on measurements that other tests disturbed.
func InOwnDirectories(m *testing.M) interface{ Run() int } { return inOwnDirectories{m} }

type inOwnDirectories struct{ *testing.M }

func (m inOwnDirectories) Run() int {
	dir, err := os.MkdirTemp("", "ringtrain-test-")
	defer os.RemoveAll(dir)
	for _, name := range []string{"TMPDIR", "XDG_RUNTIME_DIR", "XDG_CACHE_HOME"} {
		err = errors.Join(err, os.Setenv(name, dir))
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "collectivetest:", err)
		return 1
	}
	return m.M.Run()
}
