package gpu_test

import (
	"math"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ringtrain/ringtrain/cuda"
	"github.com/ringtrain/ringtrain/nn"
	"github.com/ringtrain/ringtrain/nn/cpu"
	"github.com/ringtrain/ringtrain/nn/gpu"
	"github.com/ringtrain/ringtrain/nn/nntest"
)

// toBF16 rounds to bfloat16, ties to even.
func toBF16(v float32) float32 {
	bits := math.Float32bits(v)
	return math.Float32frombits((bits + 0x7fff + bits>>16&1) &^ 0xffff)
}

// Only the factors of products lose bits. Their sums, and biases, stay as exact as with
// float32.
func TestBF16Products(t *testing.T) {
	open(t, gpu.Options{})
	t.Run("untimed", func(t *testing.T) {
		nntest.TestRounding(t, func(t *testing.T) nn.Backend { return open(t, gpu.Options{BF16: true}) }, toBF16)
	})
	t.Run("timed", func(t *testing.T) {
		nntest.TestRounding(t, func(t *testing.T) nn.Backend { return open(t, gpu.Options{BF16: true, Timed: true}) }, toBF16)
	})
	t.Run("without epilogues", func(t *testing.T) {
		t.Setenv("RINGTRAIN_EMULATOR_LT_PLAIN", "1")
		nntest.TestRounding(t, func(t *testing.T) nn.Backend { return open(t, gpu.Options{BF16: true}) }, toBF16)
	})
}

// A product uses the factor's value at the time it is queued, however the factor has
// changed since the last product.
func TestBF16Factors(t *testing.T) {
	const n = 16
	within(t, gpu.Options{BF16: true}, func(b *gpu.Backend) {
		arena := b.Alloc(3 * n * n)
		x, y, c := arena.Slice(0, n*n), b.Alloc(n*n), b.Alloc(n*n)
		one := make([]float32, n*n)
		for i := range n {
			one[i*n+i] = 1
		}
		b.Copy(y, one)
		product := func() { b.Gemm(c, x, y, n, n, n, false, false, 0) }
		first := func() float32 { product(); return read(b, c)[0] }

		values := make([]float32, n*n)
		values[0] = 1 + 0x1p-8 + 0x1p-20 // between two bfloat16 numbers
		b.Copy(x, values)
		require.Equal(t, float32(1+0x1p-7), first())
		kernels := b.Calls().Kernels
		require.Equal(t, float32(1+0x1p-7), first())
		require.Equal(t, kernels, b.Calls().Kernels, "nothing has changed, so nothing is rounded again")

		b.Scale(x, 2)
		require.Equal(t, float32(2+0x1p-6), first())
		b.Scale(arena, 2)
		require.Equal(t, float32(4+0x1p-5), first(), "a Buffer that contains the factor has changed")
		b.Copy(x.Slice(0, 1), []float32{3})
		require.Equal(t, float32(3), first(), "a part of the factor has changed")
		b.Zero(x)
		require.Zero(t, first())
		b.Copy(x, one)
		require.Equal(t, float32(1), first())

		b.Queue("nothing", func(cuda.Stream) error { return nil })
		kernels = b.Calls().Kernels
		product()
		require.Equal(t, kernels+2, b.Calls().Kernels, "work of Queue may have changed any factor")
		b.Recycle()
		b.Copy(b.Temp(4*n*n), make([]float32, 4*n*n)) // overwrites the memory of the copies
		require.Equal(t, float32(1), first())
	})
}

// A recording rounds its own copies: it uses none that were made before it, and later
// work uses none of its copies.
func TestBF16Recordings(t *testing.T) {
	const n = 4
	within(t, gpu.Options{BF16: true}, func(b *gpu.Backend) {
		x, y, c := b.Alloc(n*n), b.Alloc(n*n), b.Alloc(n*n)
		fill := func(v nn.Buffer, to float32) {
			values := make([]float32, n*n)
			values[0] = to
			b.Copy(v, values)
		}
		product := func() { b.Gemm(c, x, y, n, n, n, false, false, 0) }
		fill(x, 1)
		fill(y, 1)
		product()
		repeat, err := b.Record("double", func() error {
			product()
			b.Scale(x, 2)
			return nil
		})
		require.NoError(t, err)
		product()
		require.Equal(t, float32(2), read(b, c)[0], "the recording has changed x")
		fill(x, 5)
		product()
		require.NoError(t, repeat())
		require.Equal(t, float32(5), read(b, c)[0], "rounded in each repetition")
		product()
		require.Equal(t, float32(10), read(b, c)[0], "the repetition has changed x")
		fill(x, 7)
		require.NoError(t, repeat())
		require.Equal(t, float32(7), read(b, c)[0], "rounded in each repetition")
	})
}

// A roundingHost rounds the factors of products as a GPU does with Options.BF16.
type roundingHost struct{ nn.Backend }

func (h roundingHost) Gemm(c, x, y nn.Buffer, m, n, k int, transX, transY bool, beta float32) {
	round := func(v nn.Buffer) nn.Buffer {
		r := make([]float32, v.Len())
		for i, f := range v.Float32s() {
			r[i] = toBF16(f)
		}
		return nn.Host(r)
	}
	h.Backend.Gemm(c, round(x), round(y), m, n, k, transX, transY, beta)
}

// Gradients match those of a host that rounds the same factors, with and without
// epilogues.
func TestBF16Gradients(t *testing.T) {
	host := cpu.New(cpu.Options{})
	want := learn(t, roundingHost{host}, .2)
	require.NoError(t, host.Close())
	one, _ := gradients(t, gpu.Options{BF16: true}, .2, fusing)
	near(t, want, one, 5e-3)
	exact, _ := gradients(t, gpu.Options{}, .2, fusing)
	require.NotEqual(t, exact, one)
	steps, choices := gradients(t, gpu.Options{BF16: true}, .2, stepwise)
	near(t, want, steps, 5e-3)
	for key := range choices {
		require.Contains(t, key, "bf16 to f32")
	}
}

// TestBF16Lockstep is TestLockstep against a host that rounds the same factors.
func TestBF16Lockstep(t *testing.T) {
	lockstep(t, compared(t), gpu.Options{BF16: true}, func(host nn.Backend) nn.Backend { return roundingHost{host} }, 1e-4, 5e-3)
}

// Recorded steps have the same bits as steps that are not recorded.
func TestBF16Whole(t *testing.T) {
	var direct outcome
	within(t, gpu.Options{BF16: true}, func(b *gpu.Backend) { direct = newWhole(t, b, wholePerceptron, rising()).run(0) })
	within(t, gpu.Options{BF16: true}, func(b *gpu.Backend) {
		require.Equal(t, direct, newWhole(t, b, wholePerceptron, rising()).run(4))
	})
}

// A layer's input, weight and gradient are rounded once per step, although two or three
// products use them.
func TestBF16Nodes(t *testing.T) {
	standIn := false
	count := func(o gpu.Options) (n int) {
		within(t, o, func(b *gpu.Backend) {
			standIn = emulated(b)
			x, labels := b.Alloc(8*32), b.AllocInts(8)
			m, err := nn.NewClassifier(b, nn.Chain(&nn.Relu{Out: 64}, &nn.Relu{Out: 64}, &nn.Softmax{}), []int{32}, classes, 3)
			require.NoError(t, err)
			_, err = b.Record("learn", func() error {
				_, _, err := m.Learn(&nn.Pass{Backend: b, Train: true}, nn.Batch{X: nn.Tensor{Shape: []int{8, 32}, Data: x}, Labels: labels})
				return err
			})
			require.NoError(t, err)
			n, err = b.Nodes("learn")
			require.NoError(t, err)
		})
		return n
	}
	rounded, exact := count(gpu.Options{BF16: true}), count(gpu.Options{})
	t.Logf("kernels of a step: %d with bfloat16, %d without", rounded, exact)
	if standIn { // on a GPU the number of kernels per product is cuBLASLt's choice
		require.Equal(t, 9, rounded-exact)
	}
}
