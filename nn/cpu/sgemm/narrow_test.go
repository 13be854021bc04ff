package sgemm

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// narrows reports whether narrow kernels compute a product, and notes which.
func narrows(k *kernels, s Shape, strideA int, transA, transB bool, used map[[2]int]bool) bool {
	noting := *k
	for v, kernels := range k.narrow {
		noting.narrow[v] = make([]func(*dotsWords), len(kernels))
		for n, f := range kernels {
			noting.narrow[v][n] = func(w *dotsWords) { used[[2]int{v, n}] = true; f(w) }
		}
	}
	v := make([]float32, max(s.M, s.N, s.K)*max(strideA, s.M, s.N, s.K))
	x := blocked{kernels: &noting, product: product{
		a: Matrix{v, strideA, transA}, b: Matrix{v, max(s.N, s.K), transB}, c: Matrix{make([]float32, s.M*s.N), s.N, false}, Shape: s,
	}}
	return x.narrow(false)
}

// Every narrow kernel is used, for the shapes for which it is faster, and for no others.
func TestNarrowKernelsAreUsed(t *testing.T) {
	for _, k := range available() {
		if k.narrow[1] == nil {
			continue
		}
		used := map[[2]int]bool{}
		for v, kernels := range k.narrow {
			for n := 1; n < len(kernels); n++ {
				require.True(t, narrows(k, Shape{v * k.lanes, n, narrowInner}, narrowInner, false, true, used), "%s: %d x %d columns", k.name, v, n)
				require.True(t, used[[2]int{v, n}], "%s: %d x %d columns", k.name, v, n)
			}
		}
		for _, c := range []struct {
			shape  Shape
			stride int
			a, b   bool // transposed
			want   bool
		}{
			{Shape{500, 10, 96}, 96, false, true, true},
			{Shape{500, k.lanes + 1, 96}, 96, false, true, true},
			{Shape{500, 2 * k.lanes, 96}, 96, false, true, false},
			{Shape{k.narrowRows, 2 * k.lanes, 96}, 96, false, true, true},
			{Shape{k.narrowRows + 1, 2 * k.lanes, 96}, 96, false, true, false},
			{Shape{k.lanes - 1, 10, 96}, 96, false, true, false},
			{Shape{500, 10, narrowInner - 1}, narrowInner, false, true, false},
			{Shape{500, 10, 96}, 500, true, true, false},
			{Shape{500, 10, 96}, 96, false, false, false},
			{Shape{40, 10, 96}, farRows / 2, false, true, true},
			{Shape{40, 10, 96}, farRows, false, true, false},
			{Shape{k.lanes, 2 * k.lanes, 96}, farRows / 2, false, true, false},
		} {
			require.Equal(t, c.want, narrows(k, c.shape, c.stride, c.a, c.b, used), "%s: %+v", k.name, c)
		}
	}
}
