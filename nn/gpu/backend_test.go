package gpu_test

import (
	"errors"
	"os"
	"os/exec"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ringtrain/ringtrain/cuda"
	"github.com/ringtrain/ringtrain/cuda/emulator"
	"github.com/ringtrain/ringtrain/nn"
	"github.com/ringtrain/ringtrain/nn/gpu"
	"github.com/ringtrain/ringtrain/nn/nntest"
)

var (
	imageCache string // directory of compiled kernels, shared by all tests; "" is the user's cache
	noStandIn  error  // why there is no emulator
)

// imagesOf is the environment variable that passes imageCache to a test in a child process.
const imagesOf = "RINGTRAIN_TEST_IMAGES"

// TestMain uses the machine's GPU if there is one, and the emulator otherwise.
func TestMain(m *testing.M) { os.Exit(run(m)) }

func run(m *testing.M) int {
	if os.Getenv("RINGTRAIN_REQUIRE_GPU") != "" {
		// On a real GPU, creating a context and compiling the kernels can take a second
		// each, so all tests share both.
		if d, err := cuda.Open(0); err == nil { // otherwise the tests report the error
			defer d.Close()
		}
		return m.Run()
	}
	if imageCache = os.Getenv(imagesOf); imageCache == "" {
		dir, err := os.MkdirTemp("", "ringtrain-images-")
		if err != nil {
			panic(err) // no test to report it
		}
		defer os.RemoveAll(dir)
		imageCache = dir
	}
	if cuda.Available() != nil {
		noStandIn = standIn()
	}
	return m.Run()
}

// open returns a Backend, or skips the test if there is neither a GPU nor an emulator.
// RINGTRAIN_REQUIRE_GPU=1 makes that a failure.
func open(t testing.TB, o gpu.Options) *gpu.Backend {
	t.Helper()
	if err := cuda.Available(); err != nil {
		err = errors.Join(noStandIn, err)
		if os.Getenv("RINGTRAIN_REQUIRE_GPU") != "" || noStandIn != nil && !errors.Is(noStandIn, emulator.ErrNoCompiler) {
			t.Fatal(err) // only a missing compiler is a reason to skip
		}
		t.Skip(err)
	}
	if o.Cache = imageCache; o.Notice == nil {
		o.Notice = func(line string) { t.Log(line) }
	}
	b, err := gpu.New(o)
	require.NoError(t, err)
	t.Cleanup(func() { _ = b.Close() }) // in case the test fails before it calls Close
	return b
}

// within runs fn on the thread of a new Backend, and requires Sync and Close to succeed.
func within(t *testing.T, o gpu.Options, fn func(b *gpu.Backend)) {
	t.Helper()
	b := open(t, o)
	require.NoError(t, b.Do(t.Context(), func() error { fn(b); return nil }))
	require.NoError(t, b.Sync(t.Context()))
	require.NoError(t, b.Close())
}

// emulated reports whether the device is the emulator's.
func emulated(b *gpu.Backend) bool { return strings.HasPrefix(b.Info().Name, "ringtrain emulator") }

func read(b nn.Backend, v nn.Buffer) []float32 {
	values := make([]float32, v.Len())
	b.Read(values, v)
	return values
}

func upload(b nn.Backend, values ...float32) nn.Buffer {
	v := b.Alloc(len(values))
	b.Copy(v, values)
	return v
}

// again runs one test in a child process with additional environment variables, and
// returns its output.
func again(t *testing.T, test string, env ...string) (string, error) {
	t.Helper()
	self, err := os.Executable()
	require.NoError(t, err)
	cmd := exec.CommandContext(t.Context(), self, "-test.run=^"+test+"$", "-test.v", "-test.timeout=100s")
	cmd.Env = append(os.Environ(), env...)
	out, err := cmd.CombinedOutput()
	return string(out), err
}

func TestUnavailable(t *testing.T) {
	why := cuda.Available()
	if why == nil {
		_, err := gpu.New(gpu.Options{Device: 1 << 20})
		require.ErrorIs(t, err, cuda.ErrUnavailable)
		require.ErrorContains(t, err, "there is no device 1048576")
		return
	}
	_, err := gpu.New(gpu.Options{})
	require.ErrorIs(t, err, cuda.ErrUnavailable)
	require.ErrorContains(t, err, why.Error(), "the reason")
}

func TestBackend(t *testing.T) {
	open(t, gpu.Options{}) // may skip the whole suite
	nntest.TestBackend(t, func(t *testing.T) nn.Backend { return open(t, gpu.Options{}) })
}
