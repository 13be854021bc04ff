//go:build gpu && cgo && linux

package gpu_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ringtrain/ringtrain/cuda"
)

// Without cuDNN, or with one that does not work, training uses our kernels. Each case needs
// its own process, because a library stays loaded.
func TestWithoutCuDNN(t *testing.T) {
	needCuDNN(t)
	file := os.Getenv(cuda.CuDNN.Variable)
	if !strings.Contains(file, "emulator-") {
		t.Skip("needs the emulator's cuDNN")
	}
	const notice = "convolutions use ringtrain's own kernels, which are slower: "
	for name, c := range map[string]struct{ setting, says string }{
		"it works":        {"", ""},
		"its version 8":   {cuda.CuDNN.Variable + "=" + filepath.Join(filepath.Dir(file), "libcudnn.so.8"), ""},
		"elsewhere":       {cuda.CuDNN.Variable + "=" + linked(t, file), ""},
		"not installed":   {cuda.CuDNN.Variable + "=", ""},
		"outdated":        {"RINGTRAIN_EMULATOR_CUDNN=8.4.1", notice + file + " is cuDNN 8.4.1, and 8.5.0 or newer is needed"},
		"not there":       {cuda.CuDNN.Variable + "=/nonexistent/libcudnn.so.9", notice + "cuDNN cannot be loaded from /nonexistent/libcudnn.so.9, which RINGTRAIN_CUDNN_LIB names"},
		"a part missing":  {cuda.CuDNN.Variable + "=" + without(t, file, "libcudnn_cnn.so.9", false), "cannot be used without its other libraries: libcudnn_cnn.so.9: cannot open shared object file"},
		"a part broken":   {cuda.CuDNN.Variable + "=" + without(t, file, "libcudnn_ops.so.9", true), "libcudnn_ops.so.9: file too short"},
		"it cannot start": {"RINGTRAIN_EMULATOR_CUDNN_REFUSES=create", notice + "cuDNN (" + file + ") does not start: cudnnCreate: CUDNN_STATUS_NOT_INITIALIZED"},
	} {
		t.Run(name, func(t *testing.T) {
			out, err := again(t, "TestConvAnyway", imagesOf+"="+imageCache, c.setting)
			require.NoError(t, err, out)
			require.Contains(t, out, "--- PASS: TestConvAnyway")
			if c.says != "" {
				require.Contains(t, out, notice)
				require.Contains(t, out, c.says)
			}
		})
	}
}

// without copies a cuDNN, but leaves out one of its libraries or makes it an empty file.
func without(t *testing.T, file, part string, empty bool) string {
	t.Helper()
	dir := t.TempDir()
	files, err := filepath.Glob(filepath.Join(filepath.Dir(file), "lib*"))
	require.NoError(t, err)
	for _, f := range files {
		name := filepath.Base(f)
		to := filepath.Join(dir, name)
		if !strings.HasPrefix(name, "libcudnn") { // only cuDNN's own libraries are changed
			require.NoError(t, os.Symlink(f, to))
			continue
		}
		text, err := os.ReadFile(f)
		require.NoError(t, err)
		switch {
		case name != part:
			require.NoError(t, os.WriteFile(to, text, 0o600))
		case empty:
			require.NoError(t, os.WriteFile(to, nil, 0o600))
		}
	}
	return filepath.Join(dir, filepath.Base(file))
}

// linked links to a cuDNN from a directory without its other libraries.
func linked(t *testing.T, file string) string {
	t.Helper()
	to := filepath.Join(t.TempDir(), "libcudnn.so")
	require.NoError(t, os.Symlink(file, to))
	return to
}
