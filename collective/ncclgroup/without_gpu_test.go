//go:build gpu && cgo && linux

package ncclgroup

import (
	"os"
	"os/exec"
	"testing"

	"github.com/stretchr/testify/require"
)

// Without a compiler there is no emulator, and tests are skipped with a reason that
// names what is missing. With a compiler that fails, tests fail.
func TestWithoutEmulator(t *testing.T) {
	emulated(t) // or skip
	if real() {
		t.Skip("the emulator is not used")
	}
	for compiler, want := range map[string][2]string{
		"/nonexistent/g++": {"--- SKIP: TestMixedMemory ", "no C++ compiler: install g++, or set CXX to one"},
		"/bin/false":       {"--- FAIL: TestMixedMemory ", "emulator: false of lib"},
	} {
		cmd := exec.CommandContext(t.Context(), os.Args[0], "-test.v", "-test.run=^TestMixedMemory$")
		cmd.Env = append(os.Environ(), "CXX="+compiler, "RINGTRAIN_CUDA_LIB=")
		out, _ := cmd.CombinedOutput() // its exit code is that of the test
		require.Contains(t, string(out), want[0], compiler)
		require.Contains(t, string(out), want[1], compiler)
	}
}
