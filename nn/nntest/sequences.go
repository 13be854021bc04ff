package nntest

import (
	"fmt"
	"math"

	"github.com/stretchr/testify/require"

	"github.com/ringtrain/ringtrain/nn"
)

func testEmbed(h *harness) {
	for _, width := range []int{1, 3, 16, 33} {
		const rows, n = 9, 40
		table, dy, before := h.normals(rows*width), h.normals(n*width), h.normals(rows*width)
		ids, want, grad := make([]int32, n), make([]float64, 0, n*width), wide(before)
		for i := range ids {
			ids[i] = h.rand.Int32N(rows - 1) // the last row gets no gradient
			want = append(want, wide(table[int(ids[i])*width:][:width])...)
			for j := range width {
				grad[int(ids[i])*width+j] += float64(dy[i*width+j])
			}
		}
		at, y, d := h.uploadInts(ids...), h.b.Temp(n*width), h.upload(before...)
		h.b.Embed(y, h.upload(table...), at, width)
		require.Equal(h, want, wide(h.read(y)), "width %d", width)
		h.b.EmbedGrad(d, h.upload(dy...), at, width)
		h.near(grad, d, 1e-5, "width %d", width)
		require.Equal(h, before[(rows-1)*width:], h.read(d)[(rows-1)*width:])
		// The sum is taken in the order of ids: repeated calls give the same bits.
		parts := h.upload(before...)
		for i := range n {
			h.b.EmbedGrad(parts, h.upload(dy[i*width:][:width]...), at.Slice(i, i+1), width)
		}
		require.Equal(h, h.read(d), h.read(parts), "one after the other, width %d", width)
	}
	h.b.Embed(h.upload(), h.upload(1), h.uploadInts(), 1) // no ids
	d := h.upload(1)
	h.b.EmbedGrad(d, h.upload(), h.uploadInts(), 1)
	require.Equal(h, []float32{1}, h.read(d))
}

func testAttention(h *harness) {
	for _, a := range []nn.Heads{
		{Positions: 1, Heads: 1, Width: 1},
		{Positions: 5, Heads: 1, Width: 4},
		{Positions: 7, Heads: 3, Width: 2},
		{Positions: 33, Heads: 2, Width: 8},
		{Positions: 130, Heads: 1, Width: 5},
	} {
		for _, causal := range []bool{false, true} {
			a.Causal = causal
			h.attentionCase(a)
			h.b.Recycle()
		}
	}
}

func (h *harness) attentionCase(a nn.Heads) {
	const rows = 2
	width := a.Heads * a.Width
	x, dy := h.normals(rows*a.Positions*3*width), h.normals(rows*a.Positions*width)
	for i := range x {
		x[i] *= 2
	}
	reference := attention{Heads: a, x: wide(x), dy: wide(dy), y: make([]float64, len(dy)), dx: make([]float64, len(x))}
	for row := range rows {
		for k := range a.Heads {
			reference.head(row*a.Positions, k)
		}
	}
	what := fmt.Sprintf("%+v", a)
	qkv, dys := h.temp(x), h.temp(dy)
	y, weights, dx := h.b.Temp(len(dy)), h.b.Temp(a.Weights(rows)), h.b.Temp(len(x))
	h.b.Attention(y, weights, qkv, a)
	h.near(reference.y, y, 2e-5, what)
	h.b.AttentionGrad(dx, dys, weights, qkv, a)
	h.near(reference.dx, dx, 1e-4, what)
	h.alone(rows, func(part func(nn.Buffer) nn.Buffer) {
		h.b.Attention(part(y), part(weights), part(qkv), a)
		h.b.AttentionGrad(part(dx), part(dys), part(weights), part(qkv), a)
	}, y, dx)

	// Scores that overflow exp unless the maximum is subtracted.
	for i := range x {
		x[i] *= 100
	}
	h.b.Copy(qkv, x)
	h.b.Attention(y, weights, qkv, a)
	for _, v := range h.read(y) {
		require.False(h, math.IsNaN(float64(v)) || math.IsInf(float64(v), 0), what)
	}
}

// attention computes results and gradients of attention.
type attention struct {
	nn.Heads
	x, dy []float64
	y, dx []float64
}

// head adds those of head k of the row whose first position has this index in the batch.
func (a *attention) head(first, k int) {
	x, dy, y, dx := a.x, a.dy, a.y, a.dx
	width := a.Heads.Heads * a.Width
	at := func(kind, t, j int) int { return (first+t)*3*width + kind*width + k*a.Width + j }
	for t := range a.Positions {
		seen := a.Positions
		if a.Causal {
			seen = t + 1
		}
		s := make([]float64, seen)
		for u := range s {
			for j := range a.Width {
				s[u] += x[at(0, t, j)] * x[at(1, u, j)] / math.Sqrt(float64(a.Width))
			}
		}
		w, p, sum := softmax(s), make([]float64, seen), 0.
		for u := range w {
			for j := range a.Width {
				out := (first+t)*width + k*a.Width + j
				y[out] += w[u] * x[at(2, u, j)]
				dx[at(2, u, j)] += w[u] * dy[out]
				p[u] += dy[out] * x[at(2, u, j)]
			}
			sum += w[u] * p[u]
		}
		for u := range w {
			ds := w[u] * (p[u] - sum) / math.Sqrt(float64(a.Width))
			for j := range a.Width {
				dx[at(0, t, j)] += ds * x[at(1, u, j)]
				dx[at(1, u, j)] += ds * x[at(0, t, j)]
			}
		}
	}
}
