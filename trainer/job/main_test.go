package job

import (
	"fmt"
	"os"
	"testing"

	"github.com/ringtrain/ringtrain/collective/collectivetest"
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
		os.Exit(collectivetest.InOwnDirectories(m).Run())
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}
