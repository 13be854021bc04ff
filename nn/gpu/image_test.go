//go:build gpu && cgo && linux

package gpu_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ringtrain/ringtrain/cuda"
	"github.com/ringtrain/ringtrain/cuda/emulator"
	"github.com/ringtrain/ringtrain/cuda/kernels"
	"github.com/ringtrain/ringtrain/nn/gpu"
)

// TestWithoutNVRTC runs this test's program again, where no NVRTC can be found:
// a process that has loaded it keeps it.
func TestWithoutNVRTC(t *testing.T) {
	open(t, gpu.Options{}) // or skip
	nvrtc := os.Getenv(cuda.NVRTC.Variable)
	env := []string{cuda.NVRTC.Variable + "=" + filepath.Join(t.TempDir(), "none.so")}
	if os.Getenv(cuda.Driver.Variable) == "" {
		out, err := again(t, "TestTraining", env...)
		require.NoError(t, err, "the driver itself compiles the image: %s", out)
		return
	}
	out, err := again(t, "TestAbort", env...)
	require.Error(t, err)
	require.Contains(t, out, "without it kernels are the program's own PTX, which the driver refuses: cuModuleLoadDataEx: CUDA_ERROR_INVALID_PTX")
	require.Contains(t, out, "NVRTC cannot be loaded from", "why it matters")

	lib, err := emulator.Open([]string{"NVRTC=" + nvrtc}, "NVRTC")
	require.NoError(t, err)
	image, _, err := lib.Compile(kernels.Source())
	require.NoError(t, err)
	twin := filepath.Join(t.TempDir(), "image")
	require.NoError(t, os.WriteFile(twin, image, 0o600))
	out, err = again(t, "TestAbort", append(env, "RINGTRAIN_EMULATOR_PTX="+twin)...)
	require.NoError(t, err, out)
	require.Contains(t, out, "--- PASS: TestAbort")
}

// again runs one test in a process of its own, with other settings, and returns
// what it says.
func again(t *testing.T, test string, env ...string) (string, error) {
	t.Helper()
	self, err := os.Executable()
	require.NoError(t, err)
	cmd := exec.CommandContext(t.Context(), self, "-test.run=^"+test+"$", "-test.v", "-test.timeout=100s")
	cmd.Env = append(os.Environ(), env...)
	out, err := cmd.CombinedOutput()
	return string(out), err
}
