//go:build linux && (amd64 || arm64) && !static

package emulator

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"
)

// cuBLASLt's constants.
const (
	real32, realBF16                        = 0, 14
	compute32, fastTF32                     = 68, 77
	transA, transB, epilogue, bias, aux, ld = 3, 4, 7, 8, 11, 12

	plain, withBias, reluAuxBias, drelu, bgradB = 1, 4, 134, 136, 512
	invalidArgument, notSupported               = 7, 15
)

// A product is a call of cublasLtMatmul: D (m×n) = op(A)·op(B), column-major.
type product struct {
	m, n, k        int
	transA, transB bool
	epilogue       int
	compute        int
	beta           float32
	factors        int // type of A and B
	result         int // type of D
}

type blas struct {
	*Device
	lt     *Library
	handle uintptr

	late    uintptr // a bias that is set after the heuristic was called
	promise uint32  // the promised alignment of operands, or 0 for cuBLASLt's default of 256 bytes
}

func newBLAS(t *testing.T) *blas {
	d := device(t)
	lt, err := Open(stand(t), "RINGTRAIN_CUBLASLT_LIB")
	require.NoError(t, err)
	b := &blas{Device: d, lt: lt}
	require.Zero(t, lt.Call("cublasLtCreate", &b.handle))
	return b
}

// run computes a product and returns the status. Pointers that the epilogue does not use may be
// 0.
func (b *blas) run(t *testing.T, p product, a, bb, d, biasAt, mask uintptr) int {
	t.Helper()
	var desc, la, lb, ldd, pref uintptr
	lt := b.lt
	require.Zero(t, lt.Call("cublasLtMatmulDescCreate", &desc, p.compute, real32))
	set := func(attribute int, v any, size int) {
		require.Zero(t, lt.Call("cublasLtMatmulDescSetAttribute", desc, attribute, v, size))
	}
	flag := func(v bool) *int32 {
		x := int32(0)
		if v {
			x = 1
		}
		return &x
	}
	e, width := uint32(p.epilogue), int64((p.m+127)/128*128)
	set(transA, flag(p.transA), 4)
	set(transB, flag(p.transB), 4)
	set(epilogue, &e, 4)
	set(bias, &biasAt, 8)
	set(aux, &mask, 8)
	set(ld, &width, 8)
	layout := func(to *uintptr, kind, rows, columns int, trans bool) {
		if trans {
			rows, columns = columns, rows
		}
		require.Zero(t, lt.Call("cublasLtMatrixLayoutCreate", to, kind, rows, columns, rows))
	}
	layout(&la, p.factors, p.m, p.k, p.transA)
	layout(&lb, p.factors, p.k, p.n, p.transB)
	layout(&ldd, p.result, p.m, p.n, false)
	require.Zero(t, lt.Call("cublasLtMatmulPreferenceCreate", &pref))
	for attribute := range 4 {
		if b.promise != 0 {
			require.Zero(t, lt.Call("cublasLtMatmulPreferenceSetAttribute", pref, 5+attribute, &b.promise, 4))
		}
	}
	var candidates [4][12]uint64
	var count int32
	if code := lt.Call("cublasLtMatmulAlgoGetHeuristic", b.handle, desc, la, lb, ldd, ldd, pref, 4, &candidates, &count); code != 0 {
		return code
	}
	require.EqualValues(t, 1, count, "with no workspace")
	if b.late != 0 {
		set(bias, &b.late, 8)
	}
	one := float32(1)
	return lt.Call("rt_matmul", b.handle, desc, &one, a, la, bb, lb, &p.beta, d, ldd, &candidates[0][0], nil)
}

func normals(n int) []float32 {
	r := rand.New(rand.NewPCG(1, uint64(n)))
	v := make([]float32, n)
	for i := range v {
		v[i] = float32(r.NormFloat64())
	}
	return v
}

// want returns the product in float64, without its epilogue.
func (p product) want(a, b, d []float32) []float64 {
	v := make([]float64, p.m*p.n)
	for j := range p.n {
		for i := range p.m {
			s := float64(p.beta) * float64(d[j*p.m+i])
			for l := range p.k {
				x, y := a[l*p.m+i], b[j*p.k+l]
				if p.transA {
					x = a[i*p.k+l]
				}
				if p.transB {
					y = b[l*p.n+j]
				}
				s += float64(x) * float64(y)
			}
			v[j*p.m+i] = s
		}
	}
	return v
}

func near(t *testing.T, want []float64, got []float32, tolerance float64, what string) {
	t.Helper()
	for i, w := range want {
		require.InDelta(t, w, got[i], tolerance*max(1, math.Abs(w)), "%s, element %d", what, i)
	}
}

func TestProducts(t *testing.T) {
	b := newBLAS(t)
	const m, n, k = 5, 7, 130
	x, y, z, biases := normals(m*k), normals(k*n), normals(m*n), normals(m)
	for _, tA := range []bool{false, true} {
		for _, tB := range []bool{false, true} {
			p := product{m: m, n: n, k: k, transA: tA, transB: tB, epilogue: plain, compute: compute32, beta: .5}
			d := up(t, b.Device, z...)
			require.Zero(t, b.run(t, p, up(t, b.Device, x...), up(t, b.Device, y...), d, 0, 0))
			near(t, p.want(x, y, z), down(t, b.Device, d, m*n), 1e-5, "product")

			p.beta, p.epilogue = 0, withBias
			require.Zero(t, b.run(t, p, up(t, b.Device, x...), up(t, b.Device, y...), d, up(t, b.Device, biases...), 0))
			want := p.want(x, y, z)
			for i := range want {
				want[i] += float64(biases[i%m])
			}
			near(t, want, down(t, b.Device, d, m*n), 1e-5, "with bias")
		}
	}
	p := product{m: m, n: n, k: k, epilogue: plain, compute: fastTF32}
	d := up(t, b.Device, z...)
	require.Zero(t, b.run(t, p, up(t, b.Device, x...), up(t, b.Device, y...), d, 0, 0))
	got := down(t, b.Device, d, m*n)
	near(t, p.want(x, y, z), got, .02, "TF32")
	exact := p.want(x, y, z)
	require.Greater(t, math.Abs(exact[0]-float64(got[0])), 1e-6, "TF32 rounds")
}

// Factors of 16 bits may have a result of 32 bits. Other mixtures are refused.
func TestProductTypes(t *testing.T) {
	b := newBLAS(t)
	const n = 8
	halves, ones := make([]float32, n*n/2), make([]float64, n*n)
	for i := range halves {
		halves[i] = math.Float32frombits(0x3f803f80) // 1 and 1
	}
	x, d, biases := up(t, b.Device, halves...), up(t, b.Device, make([]float32, n*n)...), up(t, b.Device, .5, .5, .5, .5, .5, .5, .5, .5)
	p := product{m: n, n: n, k: n, epilogue: withBias, compute: compute32, factors: realBF16}
	require.Zero(t, b.run(t, p, x, x, d, biases, 0))
	for i := range ones {
		ones[i] = n + .5
	}
	near(t, ones, down(t, b.Device, d, n*n), 0, "sums and bias are float32")
	for _, wrong := range []product{
		{m: n, n: n, k: n, epilogue: plain, compute: fastTF32, factors: realBF16},
		{m: n, n: n, k: n, epilogue: plain, compute: compute32, result: realBF16},
		{m: n, n: n, k: n, epilogue: plain, compute: compute32, factors: 2},
	} {
		require.Equal(t, notSupported, b.run(t, wrong, x, x, d, 0, 0), "%+v", wrong)
	}
}

// A forward pass with bias, Relu and mask, then the gradient through the mask, then the gradient
// of the bias.
func TestEpilogues(t *testing.T) {
	b := newBLAS(t)
	const m, n, k = 5, 7, 3
	x, y, biases := normals(m*k), normals(k*n), normals(m)
	p := product{m: m, n: n, k: k, epilogue: reluAuxBias, compute: compute32}
	d, mask := up(t, b.Device, make([]float32, m*n)...), up(t, b.Device, make([]float32, n*128/32)...)
	ux, uy := up(t, b.Device, x...), up(t, b.Device, y...)
	require.Zero(t, b.run(t, p, ux, uy, d, up(t, b.Device, biases...), mask))
	want := p.want(x, y, make([]float32, m*n))
	for i := range want {
		want[i] = max(0, want[i]+float64(biases[i%m]))
	}
	near(t, want, down(t, b.Device, d, m*n), 1e-5, "relu")

	p.epilogue = drelu
	require.Zero(t, b.run(t, p, ux, uy, d, 0, mask))
	grad := p.want(x, y, make([]float32, m*n))
	for i := range grad {
		if want[i] == 0 {
			grad[i] = 0
		}
	}
	near(t, grad, down(t, b.Device, d, m*n), 1e-5, "gradient of relu")

	p.epilogue = bgradB
	sums := up(t, b.Device, make([]float32, n)...)
	require.Zero(t, b.run(t, p, ux, uy, d, sums, 0))
	columns := make([]float64, n)
	for i, v := range y {
		columns[i/k] += float64(v)
	}
	near(t, columns, down(t, b.Device, sums, n), 1e-5, "gradient of the bias")
}

func TestProductRules(t *testing.T) {
	b := newBLAS(t)
	x := up(t, b.Device, normals(64)...)
	p := product{m: 8, n: 8, k: 8, epilogue: plain, compute: compute32}
	require.Equal(t, notSupported, b.run(t, product{m: 8, n: 8, k: 8, epilogue: 32, compute: compute32}, x, x, x, 0, 0))
	require.Equal(t, notSupported, b.run(t, p, x+4, x, x, 0, 0), "not a multiple of 16 bytes")
	p.epilogue = withBias
	require.Equal(t, invalidArgument, b.run(t, p, x, x, x, 0, 0), "no bias")
	require.Equal(t, notSupported, b.run(t, p, x, x, x, x+4, 0), "a bias whose address is not a multiple of 16 bytes")
	b.late = x
	require.Equal(t, notSupported, b.run(t, p, x, x, x, 0, 0), "a bias that was missing when the algorithm was requested")
	b.late, b.promise = 0, 4
	require.Equal(t, invalidArgument, b.run(t, p, x+4, x, x, 0, 0), "aligned as promised, but without a bias")
	p.epilogue = plain
	require.Zero(t, b.run(t, p, x+4, x, x+4, 0, 0), "aligned as promised")
	b.promise, p.epilogue = 0, withBias
	t.Setenv("RINGTRAIN_EMULATOR_LT_PLAIN", "1")
	require.Equal(t, notSupported, b.run(t, p, x, x, x, x, 0))
	p.epilogue, p.k = plain, 9
	require.Zero(t, b.run(t, p, x, x, x, 0, 0))
	require.Equal(t, illegalAddress, b.Call("cuCtxSynchronize"), "operands past the end of their memory")
}
