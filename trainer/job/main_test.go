package job

import (
	"fmt"
	"os"
	"testing"
)

// TestMain also runs the processes that tests start, which are this program again.
func TestMain(m *testing.M) {
	var err error
	switch {
	case os.Getenv(envHalf) != "":
		err = writeHalf(os.Getenv(envHalf))
	case os.Getenv(envSpec) != "":
		os.Exit(runSpec())
	default:
		os.Exit(runTests(m))
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// runTests runs the tests with directories of their own for what jobs leave outside their
// output directories: flight records, and the list of running jobs.
func runTests(m *testing.M) int {
	dir, err := os.MkdirTemp("", "ringtrain-test-")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer os.RemoveAll(dir)
	for _, name := range []string{"TMPDIR", "XDG_RUNTIME_DIR"} {
		if err := os.Setenv(name, dir); err != nil {
			fmt.Fprintln(os.Stderr, err)
			return 1
		}
	}
	return m.Run()
}
