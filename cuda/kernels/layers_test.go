//go:build linux && (amd64 || arm64) && !static

package kernels

import (
	"github.com/ringtrain/ringtrain/nn"
)

// layers has the comparisons of kernels for activations, normalisation, sequences and
// combinators.
var layers = map[string]func(h *harness){
	"gelu":                  func(h *harness) { h.gelu() },
	"gelu_grad":             func(h *harness) { h.gelu() },
	"maxout":                func(h *harness) { h.maxout() },
	"maxout_grad":           func(h *harness) { h.maxout() },
	"avg_pool":              func(h *harness) { h.averages() },
	"avg_pool_grad":         func(h *harness) { h.averages() },
	"layer_norm":            func(h *harness) { h.layerNorm() },
	"layer_norm_grad":       func(h *harness) { h.layerNorm() },
	"layer_norm_weights":    func(h *harness) { h.layerNorm() },
	"plane_sums":            func(h *harness) { h.batchNorm() },
	"plane_grads":           func(h *harness) { h.batchNorm() },
	"channel_sums":          func(h *harness) { h.batchNorm() },
	"batch_norm":            func(h *harness) { h.batchNorm() },
	"batch_norm_grad":       func(h *harness) { h.batchNorm() },
	"embed":                 func(h *harness) { h.embed() },
	"embed_grad":            func(h *harness) { h.embed() },
	"attention_weights":     func(h *harness) { h.attention() },
	"attention":             func(h *harness) { h.attention() },
	"attention_scores_grad": func(h *harness) { h.attention() },
	"attention_values_grad": func(h *harness) { h.attention() },
	"attention_grad":        func(h *harness) { h.attention() },
	"add":                   func(h *harness) { h.sums() },
	"insert":                func(h *harness) { h.columns() },
	"extract":               func(h *harness) { h.columns() },
	"transitions":           func(h *harness) { h.transitions() },
	"transitions_grad":      func(h *harness) { h.transitions() },
}

func (h *harness) gelu() {
	h.vectors(func(n int) {
		x, dy := h.corners(n), h.corners(n)
		for i := range x {
			x[i] *= 4
		}
		y, dx := h.cpu.Alloc(n), h.cpu.Alloc(n)
		h.cpu.Gelu(y, h.host(x))
		h.cpu.GeluGrad(dx, h.host(dy), h.host(x))
		gotY, gotDX := h.room(n), upload(h, dy)
		h.launch("gelu", n, gotY, upload(h, x), int64(n))
		h.same(y, gotY, "n %d", n)
		h.launch("gelu_grad", n, gotDX, gotDX, upload(h, x), int64(n))
		h.same(dx, gotDX, "gradient, n %d", n)
	})
}

func (h *harness) maxout() {
	for _, pieces := range []int{1, 2, 3, 7} {
		h.vectors(func(n int) {
			x, dy := h.corners(n*pieces), h.corners(n)
			y, dx := h.cpu.Alloc(n), h.cpu.Alloc(n*pieces)
			h.cpu.Maxout(y, h.host(x), pieces)
			h.cpu.MaxoutGrad(dx, h.host(dy), h.host(x), pieces)
			gotY, gotDX := h.room(n), upload(h, x)
			h.launch("maxout", n, gotY, gotDX, int64(n), int32(pieces))
			h.same(y, gotY, "%d of %d pieces", n, pieces)
			h.launch("maxout_grad", n, gotDX, upload(h, dy), gotDX, int64(n), int32(pieces))
			h.same(dx, gotDX, "gradient of %d of %d pieces", n, pieces)
		})
	}
}

func (h *harness) averages() {
	for _, s := range windows {
		planes, share := rows*s.Channels, 1/float32(s.Size*s.Size)
		x, dy := h.normals(rows*s.In()), h.normals(planes*s.Plane())
		y, dx := h.cpu.Alloc(len(dy)), h.cpu.Alloc(len(x))
		h.cpu.AvgPool(y, h.host(x), s)
		h.cpu.AvgPoolGrad(dx, h.host(dy), s)
		gotY, gotDX := h.room(len(dy)), h.room(len(x))
		h.launch("avg_pool", len(dy), gotY, upload(h, x), int32(planes), share, NewWindow(s))
		h.same(y, gotY, "%+v", s)
		h.launch("avg_pool_grad", len(x), gotDX, upload(h, dy), int32(planes), share, NewWindow(s))
		h.same(dx, gotDX, "%+v", s)
	}
}

func (h *harness) layerNorm() {
	h.matrices(func(rows, columns int) {
		n := rows * columns
		x, dy, g, b, before := h.normals(n), h.normals(n), h.normals(columns), h.normals(columns), h.normals(columns)
		y, moments, dx, dg, db := h.cpu.Alloc(n), h.cpu.Alloc(2*rows), h.cpu.Alloc(n), h.host(before), h.host(before)
		h.cpu.LayerNorm(y, moments, h.host(x), h.host(g), h.host(b), .01)
		h.cpu.LayerNormGrad(dx, dg, db, h.host(dy), h.host(x), moments, h.host(g))
		in, gs := upload(h, x), upload(h, g)
		gotY, gotMoments, gotDX, gotG, gotB := h.room(n), h.room(2*rows), upload(h, dy), upload(h, before), upload(h, before)
		h.launch("layer_norm", rows, gotY, gotMoments, in, gs, upload(h, b), int32(rows), int32(columns), float32(.01))
		h.same(y, gotY, "%d by %d", rows, columns)
		h.same(moments, gotMoments, "moments of %d by %d", rows, columns)
		h.launch("layer_norm_weights", columns, gotG, gotB, gotDX, in, gotMoments, int32(rows), int32(columns))
		h.near(dg, gotG, 2e-5, "dg of %d by %d", rows, columns)
		h.near(db, gotB, 2e-5, "db of %d by %d", rows, columns)
		h.launch("layer_norm_grad", rows, gotDX, gotDX, in, gotMoments, gs, int32(rows), int32(columns))
		h.same(dx, gotDX, "dx of %d by %d", rows, columns)
	})
}

func (h *harness) batchNorm() {
	for _, size := range []struct{ rows, channels, plane int }{{1, 1, 2}, {5, 3, 1}, {4, 2, 9}, {3, 5, 16}, {6, 2, 169}, {33, 1, 40}, {9, 70, 4}} {
		rows, channels, planes := size.rows, size.channels, size.rows*size.channels
		n, count := planes*size.plane, float32(rows*size.plane)
		x, dy, g, b := h.normals(n), h.normals(n), h.normals(channels), h.normals(channels)
		m := nn.Moments{Mean: h.cpu.Alloc(channels), Variance: h.cpu.Alloc(channels), Plane: size.plane, Eps: .01}
		h.cpu.ChannelMoments(m, h.host(x))
		y, dx, dg, db := h.cpu.Alloc(n), h.cpu.Alloc(n), h.cpu.Alloc(channels), h.cpu.Alloc(channels)
		h.cpu.BatchNorm(y, h.host(x), h.host(g), h.host(b), m)

		in, d, gs, parts, sums := upload(h, x), upload(h, dy), upload(h, g), h.room(2*planes), h.room(2*channels)
		mean, variance := h.room(channels), h.room(channels)
		h.launch("plane_sums", planes, parts, in, uintptr(0), int32(planes), int32(channels), int32(size.plane))
		h.launch("channel_sums", channels, mean, parts, int32(rows), int32(channels), count)
		h.same(m.Mean, mean, "mean of %+v", size)
		h.launch("plane_sums", planes, parts, in, mean, int32(planes), int32(channels), int32(size.plane))
		h.launch("channel_sums", channels, variance, parts, int32(rows), int32(channels), count)
		h.same(m.Variance, variance, "variance of %+v", size)
		gotY := h.room(n)
		h.launch("batch_norm", n, gotY, in, gs, upload(h, b), mean, variance, int64(n), int32(channels), int32(size.plane), m.Eps)
		h.same(y, gotY, "%+v", size)

		h.launch("plane_grads", planes, parts, d, in, mean, variance, int32(planes), int32(channels), int32(size.plane), m.Eps)
		h.launch("channel_sums", 2*channels, sums, parts, int32(rows), int32(2*channels), float32(1))
		for _, m.Fixed = range []bool{false, true} {
			h.cpu.Zero(dg)
			h.cpu.Zero(db)
			h.cpu.BatchNormGrad(dx, dg, db, h.host(dy), h.host(x), h.host(g), m)
			h.same(db, sums, "db of %+v", size)
			h.same(dg, sums+uintptr(4*channels), "dg of %+v", size)
			into, of := upload(h, dy), sums
			if m.Fixed {
				of = 0
			}
			h.launch("batch_norm_grad", n, into, into, in, gs, mean, variance, of, int64(n), int32(channels), int32(size.plane), count, m.Eps)
			h.same(dx, into, "dx of %+v, fixed %v", size, m.Fixed)
		}
	}
}

func (h *harness) embed() {
	for _, width := range []int{1, 3, 16, 33} {
		const rows, ids = 11, 70
		table, dy, at := h.corners(rows*width), h.normals(ids*width), h.labels(ids, rows)
		y, d := h.cpu.Alloc(ids*width), h.host(table)
		h.cpu.Embed(y, h.host(table), ints(at), width)
		h.cpu.EmbedGrad(d, h.host(dy), ints(at), width)
		gotY, gotD, from := h.room(ids*width), upload(h, table), upload(h, at)
		h.launch("embed", ids*width, gotY, gotD, from, int64(ids*width), int32(width))
		h.same(y, gotY, "width %d", width)
		h.launch("embed_grad", rows*width, gotD, upload(h, dy), from, int64(rows*width), int32(width), int32(ids))
		h.same(d, gotD, "gradient, width %d", width)
	}
}

func (h *harness) attention() {
	for _, a := range []nn.Heads{{Positions: 1, Heads: 1, Width: 1}, {Positions: 5, Heads: 3, Width: 4}, {Positions: 40, Heads: 2, Width: 8}, {Positions: 70, Heads: 1, Width: 3}} {
		for _, a.Causal = range []bool{false, true} {
			n := rows * a.Positions * a.Heads * a.Width
			queries := rows * a.Heads * a.Positions
			x, d := h.normals(3*n), h.normals(n)
			y, weights, dx := h.cpu.Alloc(n), h.cpu.Alloc(a.Weights(rows)), h.cpu.Alloc(3*n)
			h.cpu.Attention(y, weights, h.host(x), a)
			h.cpu.AttentionGrad(dx, h.host(d), weights, h.host(x), a)
			qkv, dy, gotY, gotW, gotDX, heads := upload(h, x), upload(h, d), h.room(n), h.room(weights.Len()), h.room(3*n), NewHeads(a)
			h.launch("attention_weights", queries, gotW, qkv, int32(queries), heads)
			h.launch("attention", n, gotY, gotW, qkv, int64(n), heads)
			h.near(y, gotY, 2e-6, "%+v", a)
			h.launch("attention_values_grad", n, gotDX, dy, gotW, int64(n), heads)
			h.launch("attention_scores_grad", queries, gotW, dy, qkv, int32(queries), heads)
			h.launch("attention_grad", 2*n, gotDX, qkv, gotW, int64(n), heads)
			h.near(dx, gotDX, 1e-5, "gradient, %+v", a)
		}
	}
}

func (h *harness) sums() {
	h.vectors(func(n int) {
		a, b := h.corners(n), h.corners(n)
		want, got := h.host(a), upload(h, a)
		h.cpu.Add(want, want, h.host(b))
		h.launch("add", n, got, got, upload(h, b), int64(n))
		h.same(want, got, "n %d", n)
	})
}

func (h *harness) columns() {
	for _, s := range []struct{ rows, width, at, part int }{{1, 1, 0, 1}, {5, 7, 2, 3}, {64, 33, 5, 28}} {
		whole, part := h.corners(s.rows*s.width), h.corners(s.rows*s.part)
		y, x := h.host(whole), h.cpu.Alloc(len(part))
		h.cpu.Insert(y, h.host(part), s.width, s.at, s.part)
		gotY, gotX := upload(h, whole), h.room(len(part))
		h.launch("insert", len(part), gotY, upload(h, part), int64(len(part)), int32(s.width), int32(s.at), int32(s.part))
		h.same(y, gotY, "%+v", s)
		h.cpu.Extract(x, h.host(whole), s.width, s.at, s.part)
		h.launch("extract", len(part), gotX, upload(h, whole), int64(len(part)), int32(s.width), int32(s.at), int32(s.part))
		h.same(x, gotX, "%+v", s)
	}
}
