package collectivetest

import (
	"os"
	"testing"
)

// EnvSlowTests is the variable that makes Slow run tests; .ci/run sets it.
const EnvSlowTests = "RINGTRAIN_SLOW_TESTS"

// Slow skips a test that takes long by design, such as one that waits for
// several time-outs, unless EnvSlowTests is set. A test belongs here if it takes
// more than about 3 s and a quicker one covers the same code less thoroughly.
func Slow(t testing.TB) {
	t.Helper()
	if !Thorough() {
		t.Skip("slow by design: set " + EnvSlowTests + "=1, as .ci/run does")
	}
}

// Thorough reports whether tests shall take the time they need.
func Thorough() bool { return os.Getenv(EnvSlowTests) != "" }
