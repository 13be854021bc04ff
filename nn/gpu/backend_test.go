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
	imageCache string // keeps compiled kernels from test to test; "" is the user's cache
	noStandIn  error  // why there is no stand-in for a GPU
)

// imagesOf is the variable in which a test that runs this program again hands on its
// compiled kernels.
const imagesOf = "RINGTRAIN_TEST_IMAGES"

// TestMain uses the GPU that is there, and the stand-in for one otherwise.
func TestMain(m *testing.M) { os.Exit(run(m)) }

func run(m *testing.M) int {
	if os.Getenv("RINGTRAIN_REQUIRE_GPU") != "" {
		// A machine's own GPU: making a context takes up to a second, and compiling the
		// kernels too, so both are kept from test to test.
		if d, err := cuda.Open(0); err == nil { // else the tests say so
			defer d.Close()
		}
		return m.Run()
	}
	if imageCache = os.Getenv(imagesOf); imageCache == "" {
		dir, err := os.MkdirTemp("", "ringtrain-images-")
		if err != nil {
			panic(err) // there is nobody to return it to
		}
		defer os.RemoveAll(dir)
		imageCache = dir
	}
	if cuda.Available() != nil {
		noStandIn = standIn()
	}
	return m.Run()
}

// open returns a Backend, or skips the test where none can be had.
// RINGTRAIN_REQUIRE_GPU=1 is for machines that must have a GPU.
func open(t testing.TB, o gpu.Options) *gpu.Backend {
	t.Helper()
	if err := cuda.Available(); err != nil {
		err = errors.Join(noStandIn, err)
		if os.Getenv("RINGTRAIN_REQUIRE_GPU") != "" || noStandIn != nil && !errors.Is(noStandIn, emulator.ErrNoCompiler) {
			t.Fatal(err) // a compiler that fails is no missing one
		}
		t.Skip(err)
	}
	if o.Cache = imageCache; o.Notice == nil {
		o.Notice = func(line string) { t.Log(line) }
	}
	b, err := gpu.New(o)
	require.NoError(t, err)
	t.Cleanup(func() { _ = b.Close() }) // for tests that fail before they do
	return b
}

// within runs fn on the thread of a new Backend and wants it to end well.
func within(t *testing.T, o gpu.Options, fn func(b *gpu.Backend)) {
	t.Helper()
	b := open(t, o)
	require.NoError(t, b.Do(t.Context(), func() error { fn(b); return nil }))
	require.NoError(t, b.Sync(t.Context()))
	require.NoError(t, b.Close())
}

// emulated reports whether the device is the stand-in.
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
	open(t, gpu.Options{}) // or skip as a whole
	nntest.TestBackend(t, func(t *testing.T) nn.Backend { return open(t, gpu.Options{}) })
}
