//go:build gpu && cgo && linux

package cuda

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"gorgonia.org/cu"
)

// forget makes the process search for a driver again, and undoes that when the test ends.
func forget(t *testing.T) {
	loaded.Lock()
	defer loaded.Unlock()
	library, version := loaded.library, loaded.version
	loaded.library, loaded.version = nil, 0
	t.Cleanup(func() {
		loaded.Lock()
		defer loaded.Unlock()
		if loaded.library, loaded.version = library, version; library != nil {
			require.Empty(t, bindDriver(library.handle))
		}
	})
}

// nowhere makes the search find no driver, as on a machine without one.
func nowhere(t *testing.T) {
	forget(t)
	t.Setenv(Driver.Variable, filepath.Join(t.TempDir(), "libcuda.so.1"))
}

// gorgonia.org/cu calls cuInit before main and ends the process if that fails. This test
// runs, so it did not fail. Without a driver, other functions fail as if it were not
// initialized.
func TestNoDriver(t *testing.T) {
	nowhere(t)
	err := Available()
	require.ErrorIs(t, err, ErrUnavailable)
	require.ErrorContains(t, err, "which RINGTRAIN_CUDA_LIB names")
	require.NotContains(t, err.Error(), "\n")
	_, err = Open(0)
	require.ErrorIs(t, err, ErrUnavailable)
	r := Inspect()
	require.Contains(t, r.Problem, "RINGTRAIN_CUDA_LIB")
	require.Len(t, r.Libraries, 4)
	require.NotEmpty(t, r.Libraries[0].Problem)
	for _, found := range r.Libraries {
		require.True(t, (found.Path == "") == (found.Version == ""), "%+v", found)
	}
}

// calledNames returns the functions of symbols.txt that this package calls.
func calledNames(t *testing.T) []string {
	text, err := os.ReadFile("symbols.txt")
	require.NoError(t, err)
	var names []string
	for line := range strings.Lines(string(text)) {
		fields := strings.Fields(line)
		if len(fields) > 1 && (fields[0] == "own" || fields[0] == "cu") {
			names = append(names, fields[1])
		}
	}
	return names
}

// The functions that symbols.txt marks as called are those whose failures this package
// reports, besides versions of the same function and the three that report nothing.
func TestCalledFunctionsAreMarked(t *testing.T) {
	files, err := filepath.Glob("*_gpu.go")
	require.NoError(t, err)
	reported := []string{"cuGetErrorName", "cuGetErrorString", "cuDriverGetVersion"}
	for _, file := range files {
		text, err := os.ReadFile(file)
		require.NoError(t, err)
		for _, call := range regexp.MustCompile(`\b(?:failed|failure|done)\("(cu[A-Z]\w+)"`).FindAllStringSubmatch(string(text), -1) {
			reported = append(reported, call[1])
		}
	}
	var marked []string
	for _, name := range calledNames(t) {
		marked = append(marked, regexp.MustCompile(`_v[0-9]+$`).ReplaceAllString(name, ""))
	}
	require.Subset(t, marked, reported)
	require.Subset(t, reported, marked)
}

// driverWith compiles a library with the functions of symbols.txt and makes it the driver.
// bodies replaces functions; "" leaves one out. All others fail.
func driverWith(t *testing.T, bodies map[string]string) {
	forget(t)
	if _, err := exec.LookPath("gcc"); err != nil {
		t.Skip("there is no gcc")
	}
	var source strings.Builder
	for _, name := range calledNames(t) {
		body, given := bodies[name]
		if !given {
			body = fmt.Sprintf("int %s(void) { return 999; }", name)
		}
		source.WriteString(body + "\n")
	}
	dir := t.TempDir()
	c, library := filepath.Join(dir, "driver.c"), filepath.Join(dir, "libcuda.so.1")
	require.NoError(t, os.WriteFile(c, []byte(source.String()), 0o644))
	out, err := exec.Command("gcc", "-shared", "-fPIC", "-o", library, c).CombinedOutput()
	require.NoError(t, err, string(out))
	t.Setenv(Driver.Variable, library)
}

const (
	names = `int cuGetErrorName(int r, const char **s) { *s = r == 100 ? "CUDA_ERROR_NO_DEVICE" : "CUDA_ERROR_UNKNOWN"; return 0; }`
	texts = `int cuGetErrorString(int r, const char **s) { *s = "no CUDA-capable device is detected"; return 0; }`
)

func TestDriversThatCannotBeUsed(t *testing.T) {
	for name, example := range map[string]struct {
		bodies map[string]string
		want   string
	}{
		"no such function": {map[string]string{"cuGraphUpload": ""},
			"has no function cuGraphUpload: update the NVIDIA driver"},
		"no device": {map[string]string{"cuInit": "int cuInit(unsigned f) { return 100; }", "cuGetErrorName": names, "cuGetErrorString": texts},
			"cuInit: CUDA_ERROR_NO_DEVICE: no CUDA-capable device is detected; the driver finds no GPU: check nvidia-smi and CUDA_VISIBLE_DEVICES"},
		"too old": {map[string]string{"cuInit": "int cuInit(unsigned f) { return 0; }", "cuDriverGetVersion": "int cuDriverGetVersion(int *v) { *v = 11020; return 0; }"},
			"the driver supports CUDA 11.2, and 11.4 is needed: update the NVIDIA driver"},
		"no names": {map[string]string{"cuInit": "int cuInit(unsigned f) { return 802; }"},
			"cuInit: CUDA_ERROR; check nvidia-smi"},
	} {
		t.Run(name, func(t *testing.T) {
			driverWith(t, example.bodies)
			err := Available()
			require.ErrorIs(t, err, ErrUnavailable)
			require.ErrorContains(t, err, example.want)
			require.NotContains(t, err.Error(), "\n")
		})
	}
}

// An error of gorgonia.org/cu becomes an *Error, however it is wrapped.
func TestFailed(t *testing.T) {
	require.NoError(t, failed("cuX", nil))
	var e *Error
	require.ErrorAs(t, failed("cuX", cu.InvalidValue), &e)
	require.Equal(t, 1, e.Code)
	require.Equal(t, "cuX", e.Call)
	require.ErrorAs(t, failed("cuX", wrapped{cu.OutOfMemory}), &e)
	require.Equal(t, 2, e.Code)
	require.ErrorAs(t, failed("cuX", errors.New("strange")), &e)
	require.Equal(t, "strange", e.Text)
}

// wrapped wraps an error like github.com/pkg/errors.
type wrapped struct{ cause error }

func (w wrapped) Error() string { return "cu: " + w.cause.Error() }
func (w wrapped) Cause() error  { return w.cause }

// The thread answers even if a function panics or ends the goroutine.
func TestDeviceThread(t *testing.T) {
	d := &Device{calls: make(chan call), quit: make(chan struct{}), ended: make(chan struct{})}
	started, released := make(chan error), 0
	go d.own(started, func() error { return nil }, func() error { released++; return errors.New("released late") })
	require.NoError(t, <-started)

	var thread int
	require.NoError(t, d.Do(t.Context(), func() error { thread = threadID(); return nil }))
	require.Equal(t, d.thread, thread)
	require.NoError(t, d.Do(t.Context(), func() error {
		return d.Do(t.Context(), func() error { require.Equal(t, thread, threadID()); return nil })
	}), "Do inside Do")
	broken := errors.New("broken")
	require.ErrorIs(t, d.Do(t.Context(), func() error { return broken }), broken)
	func() {
		defer func() {
			p, ok := recover().(*Panic)
			require.True(t, ok)
			require.ErrorIs(t, p, broken)
			require.Contains(t, p.Error(), "broken")
			require.Contains(t, p.Error(), "driver_gpu_test.go", "the stack of the panic")
		}()
		_ = d.Do(t.Context(), func() error { panic(broken) })
	}()

	busy, free := make(chan struct{}), make(chan struct{})
	first := make(chan error, 1)
	go func() { first <- d.Do(context.Background(), func() error { close(busy); <-free; return nil }) }()
	<-busy
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(broken)
	require.ErrorIs(t, d.Do(ctx, func() error { return nil }), broken, "it did not start")
	close(free)
	require.NoError(t, <-first)

	require.ErrorIs(t, d.Do(t.Context(), func() error { runtime.Goexit(); return nil }), ErrClosed)
	<-d.ended
	require.ErrorIs(t, d.Do(t.Context(), func() error { return nil }), ErrClosed)
	for range 2 {
		require.EqualError(t, d.Close(), "released late")
	}
	require.Equal(t, 1, released)

	d = &Device{calls: make(chan call), quit: make(chan struct{}), ended: make(chan struct{})}
	go d.own(started, func() error { return broken }, nil)
	require.ErrorIs(t, <-started, broken)
}

const doubler = `extern "C" __global__ void twice(float *y, const float *x, unsigned n) {
	unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
	if (i < n) y[i] = 2 * x[i];
}
`

// needNVRTC skips a test on machines without NVRTC.
func needNVRTC(t testing.TB) {
	t.Helper()
	library, err := NVRTC.Open(nil)
	need(t, err)
	t.Log(library.Path)
}

func TestCompile(t *testing.T) {
	needNVRTC(t)
	c := NewCache(t.TempDir())
	source := Source{Name: "twice.cu", Text: doubler}
	image, err := Compile(c, source, "sm_80")
	require.NoError(t, err)
	require.NotEmpty(t, image)
	files, err := filepath.Glob(c.dir + "/*")
	require.NoError(t, err)
	require.Len(t, files, 1)

	before, err := os.ReadFile(files[0])
	require.NoError(t, err)
	again, err := Compile(c, source, "sm_80")
	require.NoError(t, err)
	require.Equal(t, image, again)

	require.NoError(t, os.WriteFile(files[0], before[:len(before)/2], 0o644))
	again, err = Compile(c, source, "sm_80")
	require.NoError(t, err, "a broken file is compiled again")
	require.Equal(t, len(image), len(again))
	after, err := os.ReadFile(files[0])
	require.NoError(t, err)
	require.Len(t, after, len(before), "and replaced")

	source.Text = strings.Replace(doubler, "n) y", "m) y", 1)
	_, err = Compile(c, source, "sm_80")
	var refused *CompileError
	require.ErrorAs(t, err, &refused)
	require.Contains(t, refused.Log, "error")
	require.ErrorContains(t, err, "compiling twice.cu")
	require.ErrorContains(t, err, "NVRTC_ERROR_COMPILATION")
}
