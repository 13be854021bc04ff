//go:build linux && (amd64 || arm64) && !static

package kernels

import (
	"bytes"
	"os"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ringtrain/ringtrain/cuda/emulator"
)

// NVIDIA's NVRTC compiles the source for all architectures that we know without a warning, and
// the result has every kernel of List. This needs no GPU. scripts/nvrtc-check.sh fetches NVRTC.
func TestNVRTC(t *testing.T) {
	path := os.Getenv("RINGTRAIN_NVRTC_LIB")
	if path == "" {
		t.Skip("RINGTRAIN_NVRTC_LIB names no NVRTC; scripts/nvrtc-check.sh runs this test with one")
	}
	lib, err := emulator.Open([]string{"RINGTRAIN_NVRTC_LIB=" + path}, "RINGTRAIN_NVRTC_LIB")
	require.NoError(t, err)
	var major, minor int32
	require.Zero(t, lib.Call("nvrtcVersion", &major, &minor))
	for _, arch := range []string{"sm_80", "sm_90"} {
		image, log, err := lib.Compile(Source(), "--std=c++17", "--gpu-architecture="+arch)
		require.NoError(t, err, arch)
		require.Empty(t, log, arch)
		for _, k := range List {
			require.True(t, bytes.Contains(image, []byte(".text."+k.Name+"\x00")), "%s for %s", k.Name, arch)
		}
		t.Logf("NVRTC %d.%d, %s: %d bytes", major, minor, arch, len(image))
	}
}
