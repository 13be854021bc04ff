package nntest

import (
	"github.com/stretchr/testify/require"

	"github.com/ringtrain/ringtrain/nn"
)

// gemmSizes lists sizes below, at and above the common tile size of 64.
var gemmSizes = []int{1, 3, 17, 64, 70}

func testGemm(h *harness) {
	var sizes [][3]int
	for _, m := range gemmSizes {
		for _, n := range gemmSizes {
			for _, k := range gemmSizes {
				sizes = append(sizes, [3]int{m, n, k})
			}
		}
	}
	sizes = append(sizes, [][3]int{{130, 140, 65}, {2, 3, 0}, {0, 3, 2}, {3, 0, 2}}...)
	for i, s := range sizes {
		for _, trans := range [][2]bool{{false, false}, {false, true}, {true, false}, {true, true}} {
			h.gemmCase(product{s[0], s[1], s[2], trans[0], trans[1], []float32{0, 1, .5}[i%3]})
		}
		h.b.Recycle()
	}
}

// A product has the arguments of one call of Gemm besides the matrices.
type product struct {
	m, n, k        int
	transA, transB bool
	beta           float32
}

// gemmCase compares one product with three nested loops. With beta 0 the result
// replaces poison.
func (h *harness) gemmCase(p product) {
	m, n, k := p.m, p.n, p.k
	a, b := h.normals(m*k), h.normals(k*n)
	c := h.b.Temp(m * n)
	before := make([]float32, m*n)
	if p.beta != 0 {
		before = h.normals(m * n)
		h.b.Copy(c, before)
	}
	want := make([]float64, m*n)
	for i := range m {
		for j := range n {
			sum := float64(p.beta) * float64(before[i*n+j])
			for l := range k {
				sum += float64(a[at(i, l, m, k, p.transA)]) * float64(b[at(l, j, k, n, p.transB)])
			}
			want[i*n+j] = sum
		}
	}
	h.b.Gemm(c, h.temp(a), h.temp(b), m, n, k, p.transA, p.transB, p.beta)
	h.near(want, c, 1e-4, "m=%d n=%d k=%d transA=%v transB=%v beta=%v", m, n, k, p.transA, p.transB, p.beta)
}

// at returns the index of element (i, j) of a rows×cols matrix that is stored as is,
// or transposed.
func at(i, j, rows, cols int, trans bool) int {
	if trans {
		return j*rows + i
	}
	return i*cols + j
}

// temp returns v in temporary memory.
func (h *harness) temp(v []float32) nn.Buffer {
	b := h.b.Temp(len(v))
	h.b.Copy(b, v)
	return b
}

// testGemmBits repeats products in different memory and requires the same bits.
func testGemmBits(h *harness) {
	for _, s := range [][3]int{{5, 7, 9}, {130, 129, 131}} {
		m, n, k := s[0], s[1], s[2]
		a, b := h.normals(m*k), h.normals(n*k)
		var first []float32
		for try := range 4 {
			h.b.Temp(try) // shift the next allocations
			c := h.b.Temp(m * n)
			h.b.Gemm(c, h.temp(a), h.temp(b), m, n, k, false, true, 0)
			got := h.read(c)
			if first == nil {
				first = got
			}
			require.Equal(h, first, got)
		}
	}
}
