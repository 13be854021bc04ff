//go:build gpu && cgo && linux

package cuda

import (
	"os"
	"os/exec"
	"testing"

	"github.com/stretchr/testify/require"
)

// Without a compiler there is no emulator, so tests are skipped and say what is missing. If
// the compiler fails, tests fail.
func TestWithoutEmulator(t *testing.T) {
	need(t, Available())
	if os.Getenv("RINGTRAIN_CUDA_LIB") == "" {
		t.Skip("there is a GPU, so tests do not use the emulator")
	}
	for compiler, want := range map[string][2]string{
		"/nonexistent/g++": {"--- SKIP: TestCopies ", "no C++ compiler: install g++, or set CXX to one"},
		"/bin/false":       {"--- FAIL: TestCopies ", "emulator: false of lib"},
	} {
		cmd := exec.CommandContext(t.Context(), os.Args[0], "-test.v", "-test.run=^TestCopies$")
		cmd.Env = append(os.Environ(), "CXX="+compiler, "RINGTRAIN_CUDA_LIB=")
		out, _ := cmd.CombinedOutput() // ignore the exit code: the output shows the verdict
		require.Contains(t, string(out), want[0], compiler)
		require.Contains(t, string(out), want[1], compiler)
	}
}
