//go:build linux && (amd64 || arm64) && !static

package kernels

import (
	"math"
	"slices"

	"github.com/stretchr/testify/require"

	"github.com/ringtrain/ringtrain/cuda/emulator"
	"github.com/ringtrain/ringtrain/nn"
)

func download[T any](h *harness, v []T, at uintptr) {
	h.t.Helper()
	require.NoError(h.t, emulator.Download(h.d, v, at))
}

// hypers are settings of an update: plain, clipped, with decay, with L2 and
// averages.
func hypers() [][]float32 {
	base := func(change func(h []float32)) []float32 {
		h := make([]float32, nn.HyperLen)
		h[nn.HyperRate], h[nn.HyperEps] = .01, 1e-8
		h[nn.HyperBeta1], h[nn.HyperMix1], h[nn.HyperBeta2], h[nn.HyperMix2] = .9, .1, .999, .001
		change(h)
		return h
	}
	return [][]float32{
		base(func(h []float32) {}),
		base(func(h []float32) { h[nn.HyperClip] = 1 }),
		base(func(h []float32) { h[nn.HyperClip] = 1e9 }),
		base(func(h []float32) { h[nn.HyperDecay] = .02 }),
		base(func(h []float32) { h[nn.HyperL2], h[nn.HyperClip], h[nn.HyperAverage] = .1, .5, .03 }),
	}
}

// state is the data of an update.
type state struct{ w, g, m, v, average []float32 }

// state returns n elements of each, among them moments that must become 0.
func (h *harness) state(n int) state {
	s := state{h.normals(n), h.normals(n), h.normals(n), h.normals(n), h.normals(n)}
	for i := range s.v {
		s.v[i] = float32(math.Abs(float64(s.v[i])))
		if h.r.IntN(5) == 0 {
			s.g[i], s.m[i], s.v[i] = 0, 0x1p-126, 0x1p-126
		}
	}
	return s
}

func (h *harness) squaredNorm() {
	for _, n := range []int{1, 15, 4095, 4096, 4097, 10000} {
		for _, hyper := range hypers() {
			g, w := h.normals(n), h.normals(n)
			sums := h.cpu.Alloc(nn.Blocks(n))
			h.cpu.SquaredNorm(sums, h.host(g), h.host(w), h.host(hyper))
			got := h.room(sums.Len())
			h.launch("squared_norm", sums.Len(), got, upload(h, g), upload(h, w), upload(h, hyper), int64(n))
			h.same(sums, got, "n %d", n)
		}
	}
}

// update compares three steps of an optimizer on one parameter. The norm for clipping covers
// the whole gradient, even if the step updates a part.
func (h *harness) update(adam bool) {
	for _, n := range []int{1, 257, 5000} {
		for k, hyper := range hypers() {
			s := h.state(n)
			w, g, m, v, a, hy := h.host(s.w), h.host(s.g), h.host(s.m), h.host(s.v), h.host(s.average), h.host(hyper)
			norms := h.host(append(h.normals(300), 2))
			for i, x := range norms.Float32s() {
				norms.Float32s()[i] = x * x
			}
			dw, dg, dm, dv, da, dh := upload(h, s.w), upload(h, s.g), upload(h, s.m), upload(h, s.v), upload(h, s.average), upload(h, hyper)
			if hyper[nn.HyperAverage] == 0 {
				a, da = nn.Buffer{}, 0
			}
			dn, count := upload(h, norms.Float32s()), int32(norms.Len())
			for range 3 {
				if adam {
					h.cpu.Adam(w, g, m, v, a, norms, hy)
					h.launch("adam", n, dw, dg, dm, dv, da, dn, count, dh, int64(n), uintptr(0))
				} else {
					h.cpu.SGD(w, g, a, norms, hy)
					h.launch("sgd", n, dw, dg, da, dn, count, dh, int64(n), uintptr(0))
				}
			}
			h.same(w, dw, "w, n %d, hypers %d", n, k)
			h.same(m, dm, "m, n %d, hypers %d", n, k)
			h.same(v, dv, "v, n %d, hypers %d", n, k)
			h.same(a, da, "average, n %d, hypers %d", n, k)
		}
	}
	h.stopped(adam)
}

// stopped checks that an update that was withheld changes nothing.
func (h *harness) stopped(adam bool) {
	s := h.state(300)
	hyper := upload(h, hypers()[1])
	w, g, m, v := upload(h, s.w), upload(h, s.g), upload(h, s.m), upload(h, s.v)
	norms, stop := upload(h, []float32{4}), upload(h, []int32{1})
	if adam {
		h.launch("adam", 300, w, g, m, v, uintptr(0), norms, int32(1), hyper, int64(300), stop)
	} else {
		h.launch("sgd", 300, w, g, uintptr(0), norms, int32(1), hyper, int64(300), stop)
	}
	h.same(nn.Host(s.w), w, "w")
	h.same(nn.Host(s.m), m, "m")
}

// arenas compares updating all parameters at once with updating one after the other. Nothing
// may change the gaps between parameters.
func (h *harness) arenas() {
	offsets, sizes := []int{0, 16, 4200, 14256}, []int{10, 4097, 10000, 1}
	const total = 14257
	runs, blocks := Plan(offsets, sizes)
	dr, db := upload(h, runs), upload(h, blocks)
	for k, hyper := range hypers() {
		for _, adam := range []bool{true, false} {
			s := h.state(total)
			w, g, m, v, a, hy := h.host(s.w), h.host(s.g), h.host(s.m), h.host(s.v), h.host(s.average), h.host(hyper)
			dw, dg, dm, dv, da, dh := upload(h, s.w), upload(h, s.g), upload(h, s.m), upload(h, s.v), upload(h, s.average), upload(h, hyper)
			if k > 1 {
				h.cpu.Scale(g, .37)
			}
			for i, at := range offsets {
				part := func(b nn.Buffer) nn.Buffer { return b.Slice(at, at+sizes[i]) }
				norms := h.cpu.Alloc(nn.Blocks(sizes[i]))
				h.cpu.SquaredNorm(norms, part(g), part(w), hy)
				if adam {
					h.cpu.Adam(part(w), part(g), part(m), part(v), part(a), norms, hy)
				} else {
					h.cpu.SGD(part(w), part(g), part(a), norms, hy)
				}
			}
			norms := h.room(len(blocks))
			scale, clear := float32(1), int32(0)
			if k > 1 {
				scale, clear = .37, 1
			}
			step := func(stop uintptr) {
				h.launch("squared_norm_arena", len(blocks), norms, dg, scale, dw, dh, dr, db)
				if adam {
					h.launch("adam_arena", len(blocks), dw, dg, scale, clear, dm, dv, da, norms, dh, dr, db, stop)
				} else {
					h.launch("sgd_arena", len(blocks), dw, dg, scale, clear, da, norms, dh, dr, db, stop)
				}
			}
			if step(upload(h, []int32{0})); k%2 == 0 {
				step(upload(h, []int32{1})) // changes nothing
			}
			h.same(w, dw, "w, hypers %d, adam %v", k, adam)
			if k > 1 {
				h.spent(s.g, dg, offsets, sizes)
			}
			h.same(m, dm, "m, hypers %d, adam %v", k, adam)
			h.same(v, dv, "v, hypers %d, adam %v", k, adam)
			h.same(a, da, "average, hypers %d, adam %v", k, adam)
		}
	}
	h.long()
}

// long compares updating the end of a parameter whose elements an int cannot count. The memory
// has only that end, so the parameter begins before it.
func (h *harness) long() {
	const before, n = 1 << 31, 5000
	runs, blocks := Plan([]int{-before}, []int{before + n})
	require.Len(h.t, blocks, before/nn.BlockSize+nn.Blocks(n))
	blocks = blocks[before/nn.BlockSize:]
	dr, db, no := upload(h, runs), upload(h, blocks), uintptr(0)
	s, norms := h.state(n), h.cpu.Alloc(len(blocks))
	for _, adam := range []bool{true, false} {
		w, g, m, v, plain, clipped := h.host(s.w), h.host(s.g), h.host(s.m), h.host(s.v), h.host(hypers()[0]), h.host(hypers()[1])
		dw, dg, dm, dv := upload(h, s.w), upload(h, s.g), upload(h, s.m), upload(h, s.v)
		h.cpu.SquaredNorm(norms, g, w, clipped)
		got := h.room(len(blocks))
		h.launch("squared_norm_arena", len(blocks), got-4*uintptr(blocks[0].Index), dg, float32(1), dw, upload(h, hypers()[1]), dr, db)
		h.same(norms, got, "norms of a long parameter")
		if dh := upload(h, hypers()[0]); adam {
			h.cpu.Adam(w, g, m, v, nn.Buffer{}, norms, plain)
			h.launch("adam_arena", len(blocks), dw, dg, float32(1), int32(1), dm, dv, no, got, dh, dr, db, no)
		} else {
			h.cpu.SGD(w, g, nn.Buffer{}, norms, plain)
			h.launch("sgd_arena", len(blocks), dw, dg, float32(1), int32(1), no, got, dh, dr, db, no)
		}
		h.same(w, dw, "w of a long parameter, adam %v", adam)
		h.same(m, dm, "m of a long parameter, adam %v", adam)
		h.same(v, dv, "v of a long parameter, adam %v", adam)
		h.spent(s.g, dg, []int{0}, []int{n})
	}
}

// spent requires that the gradients of parameters are 0 and the gaps between them unchanged.
func (h *harness) spent(was []float32, g uintptr, offsets, sizes []int) {
	want := slices.Clone(was)
	for i, at := range offsets {
		clear(want[at : at+sizes[i]])
	}
	h.same(nn.Host(want), g, "g")
}

// follow compares with scaling and adding.
func (h *harness) follow() {
	const keep, momentum = float32(1) - .1, float32(.1)
	h.vectors(func(n int) {
		value, mean := h.corners(n), h.corners(n)
		want, got, average := h.host(value), upload(h, value), h.room(n)
		h.cpu.Scale(want, keep)
		h.cpu.Axpy(want, momentum, h.host(mean))
		h.launch("follow", n, got, average, upload(h, mean), keep, momentum, int64(n), upload(h, []int32{0}))
		h.same(want, got, "n %d", n)
		h.same(want, average, "the average, n %d", n)
		h.launch("follow", n, got, uintptr(0), upload(h, mean), keep, momentum, int64(n), upload(h, []int32{1}))
		h.same(want, got, "withheld, n %d", n)
		got = upload(h, value)
		h.launch("follow", n, got, uintptr(0), upload(h, mean), keep, momentum, int64(n), uintptr(0))
		h.same(want, got, "without an average, n %d", n)
	})
}
