//go:build linux && (amd64 || arm64) && !static

package emulator

import (
	"os"
	"os/exec"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ringtrain/ringtrain/collective/collectivetest"
)

var failure = regexp.MustCompile(`(?m)^ +--- FAIL: TestCaptureRules/(\S+)`)

// If a rule of capture is removed from a copy of the emulator, the test of this rule fails, and no
// other.
func TestCaptureRulesAreTested(t *testing.T) {
	collectivetest.Slow(t)
	env := stand(t)
	if os.Getenv(mutant) != "" {
		t.Skip("this is a mutant itself")
	}
	driver, err := build(t.Context(), t.TempDir(), altered(t, "capture.cpp",
		"return found ? CaptureUnsupported : Success;", "return Success;",
		"return c->invalid = true, CaptureWrongThread;", "c->invalid = false;",
		"if (!joined) return CaptureUnjoined;", ""), libraries[:1])
	require.NoError(t, err)
	self, err := os.Executable()
	require.NoError(t, err)
	cmd := exec.CommandContext(t.Context(), self, "-test.run=^TestCaptureRules$", "-test.v")
	cmd.Env = append(os.Environ(), mutant+"="+strings.Join(append(driver, env[1:]...), "\n"))
	out, err := cmd.CombinedOutput()
	var exit *exec.ExitError
	require.ErrorAs(t, err, &exit, "%s", out)
	var failed []string
	for _, match := range failure.FindAllStringSubmatch(string(out), -1) {
		failed = append(failed, match[1])
	}
	require.Equal(t, []string{
		"wait_for_the_context", "allocate", "allocate_pinned", "free", "copy_synchronously", "unload_a_module",
		"a_stream_that_is_not_joined_again", "end_in_another_thread",
	}, failed, "%s", out)
}
