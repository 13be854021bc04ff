//go:build linux && (amd64 || arm64) && !static

package kernels

import (
	"errors"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ringtrain/ringtrain/cuda/emulator"
	"github.com/ringtrain/ringtrain/nn"
	"github.com/ringtrain/ringtrain/nn/cpu"
)

// multiprocessors of the emulator.
const multiprocessors = 4

// A harness has a device with the kernels, and nn/cpu to compare them with.
type harness struct {
	t   *testing.T
	d   *emulator.Device
	cpu *cpu.Backend
	r   *rand.Rand
}

// mutant is the environment variable that names a file of other kernels to test.
const mutant = "RINGTRAIN_KERNELS_MUTANT"

func newHarness(t *testing.T) *harness {
	t.Helper()
	m, err := workplace()
	if errors.Is(err, emulator.ErrNoCompiler) {
		t.Skip(err)
	}
	require.NoError(t, err)
	d, err := emulator.LoadDevice(m.env, m.image)
	require.NoError(t, err)
	t.Cleanup(d.Close)
	b := cpu.New(cpu.Options{})
	t.Cleanup(func() { require.NoError(t, b.Close()) })
	return &harness{t, d, b, rand.New(rand.NewPCG(7, 8))}
}

// normals returns n normally distributed numbers.
func (h *harness) normals(n int) []float32 {
	v := make([]float32, n)
	for i := range v {
		v[i] = float32(h.r.NormFloat64())
	}
	return v
}

// special are numbers on which arithmetic has special cases.
var special = []float32{
	0, float32(math.Copysign(0, -1)), 1, -1, 0x1p-149, -0x1p-149, 0x1p-126, 0x1.fffffep-127,
	math.MaxFloat32, float32(math.Inf(1)), float32(math.Inf(-1)), float32(math.NaN()),
}

// corners returns n numbers. Every third is special.
func (h *harness) corners(n int) []float32 {
	v := h.normals(n)
	for i := range v {
		if h.r.IntN(3) == 0 {
			v[i] = special[h.r.IntN(len(special))]
		}
	}
	return v
}

func (h *harness) labels(rows, classes int) []int32 {
	v := make([]int32, rows)
	for i := range v {
		v[i] = int32(h.r.IntN(classes))
	}
	return v
}

// host copies v to memory of nn/cpu.
func (h *harness) host(v []float32) nn.Buffer {
	b := h.cpu.Alloc(len(v))
	h.cpu.Copy(b, v)
	return b
}

func ints(v []int32) nn.Buffer { return nn.HostInts(slices.Clone(v)) }

// upload copies v to the device.
func upload[T any](h *harness, v []T) uintptr {
	h.t.Helper()
	at, err := emulator.Upload(h.d, v)
	require.NoError(h.t, err)
	return at
}

// room returns device memory for n float32, filled with NaNs.
func (h *harness) room(n int) uintptr {
	h.t.Helper()
	at, err := h.d.Alloc(4 * max(1, n))
	require.NoError(h.t, err)
	return at
}

func (h *harness) download(at uintptr, n int) []float32 {
	h.t.Helper()
	v := make([]float32, n)
	require.NoError(h.t, emulator.Download(h.d, v, at))
	return v
}

// launch starts a kernel for n items.
func (h *harness) launch(name string, n int, args ...any) {
	h.t.Helper()
	i := slices.IndexFunc(List, func(k Kernel) bool { return k.Name == name })
	require.GreaterOrEqual(h.t, i, 0, "%s is not in List", name)
	grid, block := List[i].Shape.Of(n, multiprocessors)
	require.NoError(h.t, h.d.Launch(0, name, [3]uint32{grid.X, grid.Y, grid.Z}, [3]uint32{block.X, block.Y, block.Z}, args...), name)
}

// same requires equal bits, except that any NaN equals any other.
func (h *harness) same(want nn.Buffer, got uintptr, what string, args ...any) {
	h.t.Helper()
	values := h.download(got, want.Len())
	for i, w := range want.Float32s() {
		g := values[i]
		if math.Float32bits(w) != math.Float32bits(g) && (w == w || g == g) {
			require.Failf(h.t, "not equal", "element %d of %d: want %v (%#x), got %v (%#x): "+what,
				append([]any{i, len(values), w, math.Float32bits(w), g, math.Float32bits(g)}, args...)...)
		}
	}
}

// near requires numbers within a relative tolerance or, below 1, the same absolute one.
func (h *harness) near(want nn.Buffer, got uintptr, tolerance float64, what string, args ...any) {
	h.t.Helper()
	values := h.download(got, want.Len())
	for i, w := range want.Float32s() {
		g := values[i]
		if w != w && g != g || w == g {
			continue
		}
		if !(math.Abs(float64(w)-float64(g)) <= tolerance*max(1, math.Abs(float64(w)))) {
			require.Failf(h.t, "not near", "element %d of %d: want %v, got %v: "+what, append([]any{i, len(values), w, g}, args...)...)
		}
	}
}
