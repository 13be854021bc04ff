package collectivetest

import (
	"os"
	"testing"
)

// EnvSlowTests is the variable that enables slow tests. .ci/run sets it.
const EnvSlowTests = "RINGTRAIN_SLOW_TESTS"

// Slow skips a test that is slow by design, such as one that waits for several
// time-outs, unless EnvSlowTests is set. Use it for a test that takes more than about
// 3 s if a faster one covers the same code less thoroughly.
func Slow(t testing.TB) {
	t.Helper()
	if !Thorough() {
		t.Skip("slow by design: set " + EnvSlowTests + "=1, as .ci/run does")
	}
}

// Thorough reports whether slow tests are enabled.
func Thorough() bool { return os.Getenv(EnvSlowTests) != "" }
