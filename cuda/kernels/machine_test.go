//go:build linux && (amd64 || arm64) && !static

package kernels

import (
	"cmp"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ringtrain/ringtrain/cuda/emulator"
)

// A machine is shared by all tests of a process: the driver, and the kernels, compiled once.
type machine struct {
	env   []string
	image []byte
}

// workplace returns the emulator, or the machine's own GPU if RINGTRAIN_REQUIRE_GPU is set.
var workplace = sync.OnceValues(func() (machine, error) {
	source := Source()
	if path := os.Getenv(mutant); path != "" {
		text, err := os.ReadFile(path)
		if err != nil {
			return machine{}, err
		}
		source = string(text)
	}
	if os.Getenv("RINGTRAIN_REQUIRE_GPU") != "" {
		return ownGPU(source)
	}
	env, err := emulator.BuildShared(context.Background())
	if err != nil {
		return machine{}, err
	}
	nvrtc, err := emulator.Open(env, "RINGTRAIN_NVRTC_LIB")
	if err != nil {
		return machine{}, err
	}
	image, _, err := nvrtc.Compile(source)
	return machine{env, image}, err
})

// ownGPU holds the GPU's context until the process ends, because creating one can take a
// second. It caches the compiled kernels for the next process.
func ownGPU(source string) (machine, error) {
	env := []string{
		"RINGTRAIN_CUDA_LIB=" + cmp.Or(os.Getenv("RINGTRAIN_CUDA_LIB"), "libcuda.so.1"),
		"RINGTRAIN_NVRTC_LIB=" + cmp.Or(os.Getenv("RINGTRAIN_NVRTC_LIB"), "libnvrtc.so.13"),
	}
	driver, err := emulator.Open(env, "RINGTRAIN_CUDA_LIB")
	if err != nil {
		return machine{}, err
	}
	nvrtc, err := emulator.Open(env, "RINGTRAIN_NVRTC_LIB")
	if err != nil {
		return machine{}, err
	}
	const capabilityMajor, capabilityMinor = 75, 76 // of CUdevice_attribute
	var major, minor, version, patch int32
	var held uintptr
	for _, c := range []struct {
		of   *emulator.Library
		call string
		args []any
	}{
		{driver, "cuInit", []any{0}},
		{driver, "cuDeviceGetAttribute", []any{&major, capabilityMajor, 0}},
		{driver, "cuDeviceGetAttribute", []any{&minor, capabilityMinor, 0}},
		{driver, "cuDevicePrimaryCtxRetain", []any{&held, 0}},
		{nvrtc, "nvrtcVersion", []any{&version, &patch}},
	} {
		if code := c.of.Call(c.call, c.args...); code != emulator.Success {
			return machine{}, &emulator.Error{Call: c.call, Code: code}
		}
	}
	options := []string{"--std=c++17", fmt.Sprintf("--gpu-architecture=sm_%d%d", major, minor)}
	key := sha256.Sum256(fmt.Append(nil, source, options, env, version, patch))
	image, err := kept(fmt.Sprintf("%x", key), func() ([]byte, error) {
		image, _, err := nvrtc.Compile(source, options...)
		return image, err
	})
	return machine{env, image}, err
}

// kept returns the contents of a file in the user's cache. If there is none, it stores the
// result of make there. Processes may share the file: a reader sees all of it or nothing.
func kept(key string, make func() ([]byte, error)) ([]byte, error) {
	cache, err := os.UserCacheDir()
	if err != nil {
		return make() // without storing it
	}
	dir := filepath.Join(cache, "ringtrain", "test-kernels")
	if image, err := os.ReadFile(filepath.Join(dir, key)); err == nil {
		return image, nil
	}
	image, err := make()
	if err != nil {
		return nil, err
	}
	return image, errors.Join(os.MkdirAll(dir, 0o755), replace(filepath.Join(dir, key), image))
}

func replace(path string, content []byte) error {
	f, err := os.CreateTemp(filepath.Dir(path), ".new-*")
	if err != nil {
		return err
	}
	_, err = f.Write(content)
	return errors.Join(err, f.Close(), os.Rename(f.Name(), path))
}

// On a real GPU only the first process compiles.
func TestKernelsAreKept(t *testing.T) {
	m, err := workplace()
	if errors.Is(err, emulator.ErrNoCompiler) {
		t.Skip(err)
	}
	require.NoError(t, err)
	cache := t.TempDir()
	run := func() (string, error) {
		self, err := os.Executable()
		require.NoError(t, err)
		cmd := exec.CommandContext(t.Context(), self, "-test.run=^TestResources$", "-test.v")
		cmd.Env = append(append(os.Environ(), m.env...), "RINGTRAIN_REQUIRE_GPU=1", "XDG_CACHE_HOME="+cache)
		out, err := cmd.CombinedOutput()
		return string(out), err
	}
	out, err := run()
	require.NoError(t, err, out)
	images, err := filepath.Glob(filepath.Join(cache, "ringtrain", "test-kernels", "*"))
	require.NoError(t, err)
	require.Len(t, images, 1)
	out, err = run()
	require.NoError(t, err, out)
	require.NoError(t, os.WriteFile(images[0], []byte("no image"), 0o600))
	out, err = run()
	require.Error(t, err, "it takes what was kept")
	require.True(t, strings.Contains(out, "cuModuleLoadData"), out)
}
