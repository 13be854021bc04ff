//go:build !noasm && !race

package cpu

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ringtrain/ringtrain/nn"
)

// needWide skips a test where no kernels for rows exist.
func needWide(t *testing.T) {
	t.Helper()
	if rowsAtOnce(pair) == 0 {
		t.Skip("this build or processor has no kernels for rows to compare with")
	}
}

// bothWidths requires that f fills a vector with the same bits with and without AVX-512.
func bothWidths(t *testing.T, what string, f func() []float32) {
	t.Helper()
	defer func() { hasAVX512 = true }()
	hasAVX512 = false
	want := f()
	hasAVX512 = true
	same(t, want, f(), what)
}

// numbers returns n numbers: from pool if unusual, else normal ones.
func numbers(n int, r *rand.Rand, unusual bool) []float32 {
	if unusual {
		return pool(n, r)
	}
	v := make([]float32, n)
	for i := range v {
		v[i] = float32(r.NormFloat64())
	}
	return v
}

// host returns a Buffer with a copy of v.
func host(v []float32) nn.Buffer { return nn.Host(append([]float32(nil), v...)) }

func TestLayerNormRowsEqualLoops(t *testing.T) {
	needWide(t)
	r := rand.New(rand.NewPCG(1, 9))
	for _, width := range []int{1, 8, 15, 16, 17, 32, 48, 128, 400} {
		for _, rows := range []int{0, 1, 3, stretch/width + 2} {
			unusual := rows == 3
			x, dy, g, shift := numbers(rows*width, r, unusual), numbers(rows*width, r, unusual), numbers(width, r, unusual), numbers(width, r, unusual)
			dg, db := numbers(width, r, unusual), numbers(width, r, unusual)
			what := fmt.Sprintf("%d rows of %d", rows, width)
			var b Backend
			bothWidths(t, "norm of "+what, func() []float32 {
				y, moments := make([]float32, rows*width), make([]float32, 2*rows)
				b.LayerNorm(nn.Host(y), nn.Host(moments), host(x), host(g), host(shift), 1e-5)
				return append(y, moments...)
			})
			bothWidths(t, "gradient of the norm of "+what, func() []float32 {
				y, moments, dx, dgs, dbs := host(x), make([]float32, 2*rows), host(dy), host(dg), host(db)
				b.LayerNorm(y, nn.Host(moments), host(x), host(g), host(shift), 1e-5)
				b.LayerNormGrad(dx, dgs, dbs, dx, host(x), nn.Host(moments), host(g))
				return append(append(dx.Float32s(), dgs.Float32s()...), dbs.Float32s()...)
			})
		}
	}
}

func TestAttentionRowsEqualLoops(t *testing.T) {
	needWide(t)
	r := rand.New(rand.NewPCG(2, 9))
	for _, positions := range []int{1, 15, 16, 31, 32, 33, 48, 64, 80, 96} {
		for _, causal := range []bool{false, true} {
			for _, unusual := range []bool{false, true} {
				a := nn.Heads{Positions: positions, Heads: 2, Width: 8, Causal: causal}
				const rows = 2
				qkv, dy := numbers(rows*positions*48, r, unusual), numbers(rows*positions*16, r, unusual)
				b := New(Options{})
				bothWidths(t, fmt.Sprintf("%+v", a), func() []float32 {
					b.Recycle()
					y, w, dqkv := make([]float32, len(dy)), make([]float32, a.Weights(rows)), make([]float32, len(qkv))
					b.Attention(nn.Host(y), nn.Host(w), nn.Host(qkv), a)
					all := append(y, w...)
					b.AttentionGrad(nn.Host(dqkv), nn.Host(dy), nn.Host(w), nn.Host(qkv), a)
					return append(all, dqkv...)
				})
			}
		}
	}
}

// A row of scores that does not fit into one kernel call is a call of its own, and rows
// between others stay as they are.
func TestWeightsOfFarRows(t *testing.T) {
	needWide(t)
	r := rand.New(rand.NewPCG(3, 9))
	const keys, pitch, rows = stretch / 2, stretch/2 + 16, 5
	m := maskedRows{keys: keys, seen: keys - 3, step: 1, scale: .5}
	scores, ones := numbers(rows*pitch, r, false), make([]float32, keys)
	fill(ones, 1)
	bothWidths(t, "weights", func() []float32 {
		s := append([]float32(nil), scores...)
		m.weights(s, rows-1, pitch, ones)
		return s
	})
	require.Equal(t, 2, rowsAtOnce(keys))
}
