package cpu_test

import (
	"math/rand/v2"
	"runtime"
	"testing"
	"unsafe"

	"github.com/stretchr/testify/require"

	"github.com/ringtrain/ringtrain/nn"
	"github.com/ringtrain/ringtrain/nn/cpu"
	"github.com/ringtrain/ringtrain/nn/cpu/sgemm"
)

func TestBuffersAreAligned(t *testing.T) {
	b := cpu.New(cpu.Options{})
	start := func(v nn.Buffer) uintptr {
		if v.DType() == nn.Int32 {
			return uintptr(unsafe.Pointer(unsafe.SliceData(v.Int32s())))
		}
		return uintptr(unsafe.Pointer(unsafe.SliceData(v.Float32s())))
	}
	for n := 1; n < 100; n++ {
		require.Zero(t, start(b.Alloc(n))%64)
		require.Zero(t, start(b.AllocInts(n))%64)
		require.Zero(t, start(b.Temp(n))%64)
	}
}

func normals(n int) []float32 {
	r := rand.New(rand.NewPCG(uint64(n), 1))
	v := make([]float32, n)
	for i := range v {
		v[i] = float32(r.NormFloat64())
	}
	return v
}

// Products that are large enough to run on several goroutines have the same bits for any
// GOMAXPROCS.
func TestGemmDoesNotDependOnProcessors(t *testing.T) {
	const m, n, k = 200, 130, 150
	b := cpu.New(cpu.Options{})
	x, y := b.Alloc(m*k), b.Alloc(k*n)
	b.Copy(x, normals(m*k))
	b.Copy(y, normals(k*n))
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(0))
	for _, trans := range [][2]bool{{false, false}, {false, true}, {true, false}} {
		var first []float32
		for _, procs := range []int{1, 2, 7} {
			runtime.GOMAXPROCS(procs)
			c := b.Alloc(m * n)
			b.Gemm(c, x, y, m, n, k, trans[0], trans[1], 0)
			if first == nil {
				first = c.Float32s()
			}
			require.Equal(t, first, c.Float32s())
		}
	}
}

// A user's batch may have any alignment. The products that read it, in the forward pass and for
// the gradient of a weight, have the same bits at every alignment.
func TestBitsDoNotDependOnAlignmentOfTheBatch(t *testing.T) {
	const rows, nI, nO = 9, 37, 21
	b := cpu.New(cpu.Options{})
	w, dy := b.Alloc(nO*nI), b.Alloc(rows*nO)
	b.Copy(w, normals(nO*nI))
	b.Copy(dy, normals(rows*nO))
	values := normals(rows * nI)
	var firstY, firstG []float32
	for shift := range 16 {
		room := b.Alloc(rows*nI + 16)
		x := room.Slice(shift, shift+rows*nI)
		b.Copy(x, values)
		y, g := b.Alloc(rows*nO), b.Alloc(nO*nI)
		b.Gemm(y, x, w, rows, nO, nI, false, true, 0)
		b.Gemm(g, dy, x, nO, nI, rows, true, false, 1)
		if shift == 0 {
			firstY, firstG = y.Float32s(), g.Float32s()
		}
		require.Equal(t, firstY, y.Float32s())
		require.Equal(t, firstG, g.Float32s())
	}
}

// counting is a BLAS that counts its calls.
type counting struct {
	products sgemm.Multiplier
	calls    int
}

func (c *counting) Multiply(z, a, b sgemm.Matrix, s sgemm.Shape, beta float32) {
	c.calls++
	c.products.Multiply(z, a, b, s, beta)
}

func TestOptionsBLAS(t *testing.T) {
	c := &counting{}
	b := cpu.New(cpu.Options{BLAS: c})
	b.Gemm(b.Alloc(1), b.Alloc(1), b.Alloc(1), 1, 1, 1, false, false, 0)
	require.Equal(t, 1, c.calls)
}

// After the first steps, temporary memory needs no more allocations.
func TestTempDoesNotAllocateInSteadyState(t *testing.T) {
	b := cpu.New(cpu.Options{})
	step := func() {
		b.Recycle()
		for n := 1; n < 200_000; n *= 3 {
			b.Release(b.Temp(n))
			b.Temp(n)
		}
	}
	step()
	step()
	require.Zero(t, testing.AllocsPerRun(10, step))
}

// Released memory is handed out again, but only whole vectors that are in use, and once.
func TestRelease(t *testing.T) {
	b := cpu.New(cpu.Options{})
	b.Temp(1 << 15)
	b.Recycle() // from here on, there is one chunk
	v, w := b.Temp(100), b.Temp(100)
	start := func(v nn.Buffer) uintptr { return uintptr(unsafe.Pointer(unsafe.SliceData(v.Float32s()))) }
	for _, other := range []nn.Buffer{{}, v.Slice(0, 50), v.Slice(50, 100), b.Alloc(100), b.AllocInts(100), b.Temp(0)} {
		b.Release(other)
	}
	require.Greater(t, start(b.Temp(100)), start(w))
	b.Release(v)
	b.Release(w)
	b.Release(w)
	fresh := b.Temp(99)
	require.NotContains(t, []uintptr{start(v), start(w)}, start(fresh), "of another length")
	require.Equal(t, start(w), start(b.Temp(100)), "the latest first")
	require.Equal(t, start(v), start(b.Temp(100)))
	require.NotContains(t, []uintptr{start(v), start(w)}, start(b.Temp(100)), "nothing is handed out twice")
	b.Release(w)
	require.Equal(t, start(w), start(b.Temp(100)), "a second time")
	b.Release(w)
	b.Recycle()
	require.NotEqual(t, start(b.Temp(100)), start(b.Temp(100)), "Recycle forgets what was released")
}

// Mismatched lengths panic instead of producing part of a result.
func TestMismatchedLengthsPanic(t *testing.T) {
	b := cpu.New(cpu.Options{})
	v := func(n int) nn.Buffer { return b.Alloc(n) }
	require.Panics(t, func() { b.Copy(v(2), []float32{1}) })
	require.Panics(t, func() { b.Read(make([]float32, 2), nn.OnDevice(0, 64, 2, nn.Float32)) })
	require.Panics(t, func() { b.AddBias(v(5), v(2)) })
	require.Panics(t, func() { b.Softmax(v(5), v(5), 0) })
	require.Panics(t, func() { b.Relu(v(5), v(4)) })
	require.Panics(t, func() { b.Relu(v(5), nn.Host(make([]float32, 9)[:4])) })
}
