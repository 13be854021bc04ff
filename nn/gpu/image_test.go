//go:build gpu && cgo && linux

package gpu_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ringtrain/ringtrain/cuda"
	"github.com/ringtrain/ringtrain/cuda/emulator"
	"github.com/ringtrain/ringtrain/cuda/kernels"
	"github.com/ringtrain/ringtrain/nn/gpu"
)

// Without NVRTC, or with a broken one, the driver compiles the program's own PTX. Each case
// needs its own process, because a library stays loaded.
func TestWithoutNVRTC(t *testing.T) {
	open(t, gpu.Options{}) // may skip the test
	nvrtc := os.Getenv(cuda.NVRTC.Variable)
	none := cuda.NVRTC.Variable + "=" + filepath.Join(t.TempDir(), "none.so")
	if os.Getenv(cuda.Driver.Variable) == "" {
		out, err := again(t, "TestTraining", none)
		require.NoError(t, err, "the driver itself compiles the image: %s", out)
		return
	}
	out, err := again(t, "TestAbort", none)
	require.Error(t, err)
	require.Contains(t, out, "the driver also rejects the program's own PTX: cuModuleLoadDataEx: CUDA_ERROR_INVALID_PTX")
	require.Contains(t, out, "NVRTC cannot be loaded from", "why the program's own PTX was needed")

	lib, err := emulator.Open([]string{"NVRTC=" + nvrtc}, "NVRTC")
	require.NoError(t, err)
	image, _, err := lib.Compile(kernels.Source())
	require.NoError(t, err)
	twin := filepath.Join(t.TempDir(), "image")
	require.NoError(t, os.WriteFile(twin, image, 0o600))
	for want, setting := range map[string]string{
		"NVRTC cannot be loaded from": none,
		"NVRTC_ERROR_BUILTIN_OPERATION_FAILURE: nvrtc: error: failed to open libnvrtc-builtins.so.13.0. Make sure":                                      cuda.NVRTC.Variable + "=" + withoutBuiltins(t, nvrtc),
		"the driver rejects what NVRTC compiled: cuModuleLoadDataEx: CUDA_ERROR_INVALID_IMAGE.*is newer than the driver, which supports only CUDA 12.8": "RINGTRAIN_EMULATOR_DRIVER=12080",
	} {
		out, err = again(t, "TestAbort", setting, "RINGTRAIN_EMULATOR_LT=12.8.0", "RINGTRAIN_EMULATOR_PTX="+twin)
		require.NoError(t, err, out)
		require.Contains(t, out, "--- PASS: TestAbort")
		require.Regexp(t, "using the program's own PTX kernels, compiled by the driver: .*"+want, out)
	}
}

// withoutBuiltins copies NVRTC to a directory without its library of built-ins.
func withoutBuiltins(t *testing.T, nvrtc string) string {
	t.Helper()
	dir := t.TempDir()
	for _, name := range []string{filepath.Base(nvrtc), "shim.h"} {
		text, err := os.ReadFile(filepath.Join(filepath.Dir(nvrtc), name))
		require.NoError(t, err)
		require.NoError(t, os.WriteFile(filepath.Join(dir, name), text, 0o600))
	}
	return filepath.Join(dir, filepath.Base(nvrtc))
}

// TestKernelCountsOfAnother runs the tests that count kernels on an emulator that calls
// itself a GPU and uses two kernels per product.
func TestKernelCountsOfAnother(t *testing.T) {
	open(t, gpu.Options{}) // may skip the test
	if os.Getenv(cuda.Driver.Variable) == "" {
		t.Skip("needs the emulator")
	}
	out, err := again(t, "(TestFusedLaunches|TestBF16Nodes|TestWholeStepCalls)", "RINGTRAIN_EMULATOR_NAME=another", "RINGTRAIN_EMULATOR_LT_KERNELS=2")
	require.NoError(t, err, out)
	require.Equal(t, 6, strings.Count(out, "kernels "), out)
}

// TestConvChoicesOfAnother runs a test that a visit to a GPU must not skip on an emulator
// that calls itself a GPU.
func TestConvChoicesOfAnother(t *testing.T) {
	needCuDNN(t)
	if os.Getenv(cuda.Driver.Variable) == "" {
		t.Skip("needs the emulator")
	}
	out, err := again(t, "TestConvChoices", "RINGTRAIN_EMULATOR_NAME=another", imagesOf+"="+imageCache)
	require.NoError(t, err, out)
	require.Contains(t, out, "--- PASS: TestConvChoices", out)
}
