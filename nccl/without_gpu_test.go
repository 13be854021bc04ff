//go:build gpu && cgo && linux

package nccl

import (
	"os"
	"os/exec"
	"testing"

	"github.com/stretchr/testify/require"
)

// Without a compiler there is no emulator, so tests are skipped and say what is missing. If
// the compiler fails, tests fail.
func TestWithoutEmulator(t *testing.T) {
	emulate(t) // may skip the test
	for compiler, want := range map[string][2]string{
		"/nonexistent/g++": {"--- SKIP: TestCalls ", "no C++ compiler: install g++, or set CXX to one"},
		"/bin/false":       {"--- FAIL: TestCalls ", "emulator: false of lib"},
	} {
		cmd := exec.CommandContext(t.Context(), os.Args[0], "-test.v", "-test.run=^TestCalls$")
		cmd.Env = append(os.Environ(), "CXX="+compiler, "RINGTRAIN_CUDA_LIB=")
		out, _ := cmd.CombinedOutput() // ignore the exit code: the output shows the verdict
		require.Contains(t, string(out), want[0], compiler)
		require.Contains(t, string(out), want[1], compiler)
	}
}
