package cpu

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ringtrain/ringtrain/nn"
)

// special lists the bits of values with unusual arithmetic.
var special = []uint32{
	0, 1, 0x007fffff, 0x00800000, 0x00800001, 0x33800000, 0x3f800000, 0x3f800001, 0x7f7fffff,
	0x7f800000, 0x7f800001, 0x7fc00000, 0x7fc12345,
}

// pool returns n numbers of both signs; every third is special.
func pool(n int, r *rand.Rand) []float32 {
	p := make([]float32, n)
	for i := range p {
		bits := r.Uint32()
		switch r.IntN(3) {
		case 0:
			bits = special[r.IntN(len(special))] | r.Uint32()&(1<<31)
		case 1:
			bits = math.Float32bits(float32(r.NormFloat64()))
		}
		p[i] = math.Float32frombits(bits)
	}
	return p
}

func needKernels(t *testing.T) {
	t.Helper()
	if fastScale(make([]float32, 64), 1) == 0 {
		t.Skip("this build or processor has no kernels to compare with the loops")
	}
}

// eachWidth runs a test with the kernels of AVX2 or NEON, and then with those of AVX-512
// where the processor has it.
func eachWidth(t *testing.T, f func(t *testing.T)) {
	wide := hasAVX512
	defer func() { hasAVX512 = wide }()
	hasAVX512 = false
	t.Run("narrow", f)
	if hasAVX512 = wide; wide {
		t.Run("AVX-512", f)
	}
}

// same requires equal bits, except that any NaN equals any other.
func same[T float32 | float64](t *testing.T, want, got []T, what string) {
	t.Helper()
	require.Len(t, got, len(want), what)
	for i, w := range want {
		g := got[i]
		if w != w && g != g {
			continue
		}
		// The bits of the float64 differ whenever the float32 differ, including 0 and -0.
		if math.Float64bits(float64(w)) != math.Float64bits(float64(g)) {
			require.Fail(t, "not equal", "element %d of %d: %s: want %v, got %v", i, len(want), what, w, g)
		}
	}
}

// A kernelCase is one operation on vectors, as a loop and as a kernel. It writes the first vectors
// and may read all of them.
type kernelCase struct {
	name    string
	written int
	loop    func(v [][]float32, a float32)
	fast    func(v [][]float32, a float32)
}

// vectors is the number of vectors given to a case.
const vectors = 5

var kernelCases = []kernelCase{
	{"add", 1,
		func(v [][]float32, _ float32) { addLoop(v[0], v[1]) },
		func(v [][]float32, _ float32) { add(v[0], v[1]) }},
	{"sum", 1,
		func(v [][]float32, _ float32) { sumLoop(v[0], v[1], v[2]) },
		func(v [][]float32, _ float32) { new(Backend).Add(nn.Host(v[0]), nn.Host(v[1]), nn.Host(v[2])) }},
	{"sum in place", 1,
		func(v [][]float32, _ float32) { sumLoop(v[0], v[1], v[0]) },
		func(v [][]float32, _ float32) { new(Backend).Add(nn.Host(v[0]), nn.Host(v[1]), nn.Host(v[0])) }},
	{"scale", 1,
		func(v [][]float32, a float32) { scaleLoop(v[0], a) },
		func(v [][]float32, a float32) { new(Backend).Scale(nn.Host(v[0]), a) }},
	{"axpy", 1,
		func(v [][]float32, a float32) { axpyLoop(v[0], a, v[1]) },
		func(v [][]float32, a float32) { new(Backend).Axpy(nn.Host(v[0]), a, nn.Host(v[1])) }},
	{"max", 1,
		func(v [][]float32, _ float32) { maxLoop(v[0], v[1]) },
		func(v [][]float32, _ float32) { largest(v[0], v[1]) }},
	{"relu", 1,
		func(v [][]float32, _ float32) { reluLoop(v[0], v[1]) },
		func(v [][]float32, _ float32) { new(Backend).Relu(nn.Host(v[0]), nn.Host(v[1])) }},
	{"relu in place", 1,
		func(v [][]float32, _ float32) { reluLoop(v[0], v[0]) },
		func(v [][]float32, _ float32) { new(Backend).Relu(nn.Host(v[0]), nn.Host(v[0])) }},
	{"reluGrad", 1,
		func(v [][]float32, a float32) { reluGradLoop(v[0], v[1], v[2], a) },
		func(v [][]float32, a float32) {
			new(Backend).ReluGrad(nn.Host(v[0]), nn.Host(v[1]), nn.Host(v[2]), a)
		}},
	{"reluGrad in place", 1,
		func(v [][]float32, a float32) { reluGradLoop(v[0], v[0], v[2], a) },
		func(v [][]float32, a float32) {
			new(Backend).ReluGrad(nn.Host(v[0]), nn.Host(v[0]), nn.Host(v[2]), a)
		}},
	{"exp", 1,
		func(v [][]float32, a float32) { expLoop(v[0], a) },
		func(v [][]float32, a float32) { done := fastExp(v[0], a); expLoop(v[0][done:], a) }},
	{"gelu", 1,
		func(v [][]float32, _ float32) { geluLoop(v[0], v[1]) },
		func(v [][]float32, _ float32) { new(Backend).Gelu(nn.Host(v[0]), nn.Host(v[1])) }},
	{"geluGrad", 1,
		func(v [][]float32, _ float32) { geluGradLoop(v[0], v[0], v[2]) },
		func(v [][]float32, _ float32) { new(Backend).GeluGrad(nn.Host(v[0]), nn.Host(v[0]), nn.Host(v[2])) }},
	{"adam", 4,
		func(v [][]float32, a float32) { adamLoop(operands{v[0], v[1], v[2], v[3], nil}, someTerms(a)) },
		func(v [][]float32, a float32) { adam(someTerms(a), operands{v[0], v[1], v[2], v[3], nil}, false) }},
	{"adam with averages", 5,
		func(v [][]float32, a float32) { adamLoop(operands{v[0], v[1], v[2], v[3], v[4]}, someTerms(a)) },
		func(v [][]float32, a float32) { adam(someTerms(a), operands{v[0], v[1], v[2], v[3], v[4]}, false) }},
	{"adam of spent gradients", 5,
		func(v [][]float32, a float32) {
			adamLoop(operands{v[0], v[1], v[2], v[3], v[4]}, someTerms(a))
			clear(v[1])
		},
		func(v [][]float32, a float32) { adam(someTerms(a), operands{v[0], v[1], v[2], v[3], v[4]}, true) }},
	{"sgd", 2,
		func(v [][]float32, a float32) { sgdLoop(operands{w: v[0], g: v[1]}, someTerms(a)) },
		func(v [][]float32, a float32) { sgd(someTerms(a), operands{w: v[0], g: v[1]}, false) }},
	{"sgd with averages", 3,
		func(v [][]float32, a float32) { sgdLoop(operands{w: v[0], g: v[1], average: v[2]}, someTerms(a)) },
		func(v [][]float32, a float32) { sgd(someTerms(a), operands{w: v[0], g: v[1], average: v[2]}, false) }},
}

// someTerms returns terms that all differ and are neither 0 nor 1, so that a swap shows. a is the L2
// factor.
func someTerms(a float32) *terms {
	return &terms{
		termScale: 1.3, termClip: .7, termL2: a, termRate: .003, termDecay: .01, termShare: .4, termEps: 1e-5,
		termBeta1: .9, termMix1: .11, termBeta2: .99, termMix2: .012,
	}
}

// Kernels equal loops at every length and alignment, and write nothing outside their vectors.
func TestKernelsEqualLoops(t *testing.T) {
	needKernels(t)
	eachWidth(t, kernelsEqualLoops)
}

func kernelsEqualLoops(t *testing.T) {
	const longest, offsets, guard = 75, 16, 8
	const room = longest + offsets + 2*guard
	r := rand.New(rand.NewPCG(1, 2))
	source := pool(4*room, r)
	factors := append(pool(8, r), .5, 0, 1)
	for _, c := range kernelCases {
		for n := range longest + 1 {
			for offset := range offsets {
				var want, got [vectors][]float32
				var wantViews, gotViews [vectors][]float32
				for i := range vectors {
					at := guard + (offset*(2*i+1)+i)%offsets
					from := source[r.IntN(len(source)-room):][:room]
					want[i], got[i] = append([]float32(nil), from...), append([]float32(nil), from...)
					wantViews[i], gotViews[i] = want[i][at:][:n:n], got[i][at:][:n:n]
				}
				a := factors[(n+offset)%len(factors)]
				c.loop(wantViews[:], a)
				c.fast(gotViews[:], a)
				for i := range vectors {
					same(t, want[i], got[i], fmt.Sprintf("%s of %d at %d by %v, vector %d", c.name, n, offset, a, i))
				}
			}
		}
	}
}

// Moments below the smallest normal number become 0, and no others.
func TestAdamFlushesSubnormalMoments(t *testing.T) {
	needKernels(t)
	const n = 32
	t1 := *someTerms(0)
	t1[termBeta1], t1[termBeta2], t1[termMix1], t1[termMix2] = 1, 1, 0, 0
	below := math.Nextafter32(smallestNormal, 0)
	moments := []float32{smallestNormal, -smallestNormal, below, -below, 0, 1, -1, math.SmallestNonzeroFloat32}
	var want, got operands
	for _, o := range []*operands{&want, &got} {
		*o = operands{w: make([]float32, n), g: make([]float32, n), m: make([]float32, n), v: make([]float32, n)}
		for i := range n {
			m := moments[i%len(moments)]
			o.w[i], o.m[i], o.v[i] = 1, m, float32(math.Abs(float64(m)))
		}
	}
	adamLoop(want, &t1)
	adam(&t1, got, false)
	same(t, want.w, got.w, "weights")
	same(t, want.m, got.m, "first moments")
	same(t, want.v, got.v, "second moments")
	require.Equal(t, []float32{smallestNormal, -smallestNormal, 0, 0, 0, 1, -1, 0}, got.m[:len(moments)])
}

// Long vectors are passed to the kernels in several calls.
func TestKernelsOfLongVectors(t *testing.T) {
	needKernels(t)
	eachWidth(t, kernelsOfLongVectors)
}

func kernelsOfLongVectors(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 4))
	for _, n := range []int{1<<15 - 1, 1 << 15, 1<<16 + 21} {
		for _, c := range kernelCases {
			var want, got [vectors][]float32
			for i := range vectors {
				want[i] = pool(n, r)
				got[i] = append([]float32(nil), want[i]...)
			}
			c.loop(want[:], 1./3)
			c.fast(got[:], 1./3)
			for i := range c.written {
				same(t, want[i], got[i], c.name)
			}
		}
	}
}

func TestDotEqualsLoop(t *testing.T) {
	needKernels(t)
	r := rand.New(rand.NewPCG(5, 1))
	for n := range 100 {
		for offset := range 16 {
			x, y := pool(n+offset, r)[offset:], pool(n+offset, r)[offset:]
			var want, got [16]float32
			dotLoop(&want, x, y)
			done := fastDot(&got, x, y)
			dotLoop(&got, x[done:], y[done:])
			same(t, want[:], got[:], fmt.Sprintf("dot of %d at %d", n, offset))
		}
	}
}

func TestSquaresEqualLoop(t *testing.T) {
	needKernels(t)
	eachWidth(t, squaresEqualLoop)
}

func squaresEqualLoop(t *testing.T) {
	r := rand.New(rand.NewPCG(5, 6))
	for n := range 100 {
		for offset := range 16 {
			g, w := pool(n+offset, r)[offset:], pool(n+16, r)[15-offset:][:n]
			if n%2 == 0 { // without NaN, which would hide the rest
				for i := range g {
					g[i], w[i] = float32(r.NormFloat64()), float32(r.NormFloat64())
				}
			}
			var want, got [16]float64
			squaresLoop(&want, g, w, 1.3, .25)
			done := fastSquares(&got, g, w, 1.3, .25)
			require.Equal(t, n&^15, done)
			squaresLoop(&got, g[done:], w[done:], 1.3, .25)
			same(t, want[:], got[:], fmt.Sprintf("squares of %d at %d", n, offset))
		}
	}
}

// The masks equal those of nn.Stream, even for large coordinates.
func TestDropoutEqualsLoop(t *testing.T) {
	needKernels(t)
	r := rand.New(rand.NewPCG(7, 8))
	for width := 1; width < 100; width++ {
		for i, rate := range []float32{0, .2, .5, 1 - 0x1p-24} {
			s := nn.Stream{Seed: r.Uint64(), Step: r.Uint64N(1 << 48), First: r.IntN(1 << 30), Stride: r.IntN(9)}
			m := newMask(rate, r.Uint32N(1<<16), s)
			const rows = 3
			x := pool(rows*width, r)
			want, got := make([]float32, len(x)), make([]float32, len(x)+16)[width%16:][:len(x)]
			for row := range rows {
				dropLoop(want[row*width:][:width], x[row*width:][:width], m, row, 0)
			}
			in := x
			if i%2 == 1 { // in place
				in = got
				copy(in, x)
			}
			new(Backend).Dropout(nn.Host(got), nn.Host(in), width, rate, m.layer, s)
			same(t, want, got, fmt.Sprintf("width %d rate %v", width, rate))
		}
	}
}

// An element is kept if its number equals the threshold.
func TestDropoutAtTheThreshold(t *testing.T) {
	needKernels(t)
	m := newMask(.5, 3, nn.Stream{Seed: 1, Step: 2})
	m.threshold = m.stream.Draw(m.layer, 0, 1)[2] >> 8
	x := make([]float32, 32)
	for i := range x {
		x[i] = 1
	}
	want, got := make([]float32, 32), make([]float32, 32)
	dropLoop(want, x, m, 0, 0)
	require.Equal(t, 32, newDropKernel(m).fast(got, x, 0))
	same(t, want, got, "threshold")
	require.Equal(t, m.scale, got[4*1+2])
}

// A row that takes several kernel calls continues with the next counters.
func TestDropoutOfLongRow(t *testing.T) {
	const width = 1<<15 + 37
	x := make([]float32, width)
	for i := range x {
		x[i] = float32(i + 1)
	}
	s := nn.Stream{Seed: 1, Step: 2}
	want, got := make([]float32, width), make([]float32, width)
	dropLoop(want, x, newMask(.3, 4, s), 0, 0)
	new(Backend).Dropout(nn.Host(got), nn.Host(x), width, .3, 4, s)
	require.Equal(t, want, got)
}
