package nntest

import (
	"math"

	"github.com/stretchr/testify/require"

	"github.com/ringtrain/ringtrain/nn"
)

func testScaleAxpy(h *harness) {
	y := h.upload(1, -2, 3)
	h.b.Scale(y, 2)
	require.Equal(h, []float32{2, -4, 6}, h.read(y))
	h.b.Axpy(y, -3, h.upload(1, 10, 100))
	require.Equal(h, []float32{-1, -34, -294}, h.read(y))
}

func testSquaredNorm(h *harness) {
	for _, n := range []int{1, 5, nn.BlockSize - 1, nn.BlockSize, nn.BlockSize + 1, 3*nn.BlockSize + 7} {
		g, w := h.normals(n), h.normals(n)
		hyper := h.hyper(map[int]float32{nn.HyperL2: .5})
		want := make([]float64, nn.Blocks(n))
		for i := range g {
			x := float64(g[i]) + .5*float64(w[i])
			want[i/nn.BlockSize] += x * x
		}
		gs, ws, sums := h.upload(g...), h.upload(w...), h.b.Temp(len(want))
		h.b.SquaredNorm(sums, gs, ws, hyper)
		h.near(want, sums, 1e-5, "n=%d", n)
		// A call that covers only some blocks gives the same bits for them.
		last := (len(want) - 1) * nn.BlockSize
		one := h.b.Temp(1)
		h.b.SquaredNorm(one, gs.Slice(last, n), ws.Slice(last, n), hyper)
		require.Equal(h, h.read(sums.Slice(len(want)-1, len(want))), h.read(one))
	}
}

// hyper uploads hyper-parameters; those not in set are zero.
func (h *harness) hyper(set map[int]float32) nn.Buffer {
	v := make([]float32, nn.HyperLen)
	for i, x := range set {
		v[i] = x
	}
	return h.upload(v...)
}

// rule is one configuration of the update kernels to compare with float64.
type rule struct {
	name             string
	l2, clip, decay  float32
	average, moments bool
}

func testAdam(h *harness) {
	for _, r := range []rule{
		{name: "plain", moments: true},
		{name: "loose clip", moments: true, clip: 1e6},
		{name: "tight clip", moments: true, clip: .5},
		{name: "L2 in the gradient", moments: true, clip: .5, l2: .1},
		{name: "decay", moments: true, clip: .5, decay: .01},
		{name: "everything", moments: true, clip: .5, l2: .1, decay: .01, average: true},
	} {
		h.updateCase(r)
	}
}

func testSGD(h *harness) {
	for _, r := range []rule{
		{name: "plain"},
		{name: "everything", clip: .5, l2: .1, decay: .01, average: true},
	} {
		h.updateCase(r)
	}
}

// updateCase performs four steps with the kernels and with float64 loops.
func (h *harness) updateCase(r rule) {
	const n = 2*nn.BlockSize + 3
	h.Log(r.name)
	w := h.normals(n)
	want := newReference(w, r)
	ws, ms, vs := h.upload(w...), h.b.Alloc(n), h.b.Alloc(n)
	var average nn.Buffer
	if r.average {
		average = h.b.Alloc(n)
	}
	norms := h.b.Alloc(nn.Blocks(n))
	for step := range 4 {
		hyper := h.hyper(map[int]float32{
			nn.HyperRate: .01 * float32(step+1), nn.HyperEps: 1e-3,
			nn.HyperBeta1: .9, nn.HyperMix1: .1, nn.HyperBeta2: .99, nn.HyperMix2: .01,
			nn.HyperL2: r.l2, nn.HyperClip: r.clip, nn.HyperDecay: r.decay, nn.HyperAverage: .25,
		})
		g := h.normals(n)
		gs := h.upload(g...)
		h.b.SquaredNorm(norms, gs, ws, hyper)
		if r.moments {
			h.b.Adam(ws, gs, ms, vs, average, norms, hyper)
		} else {
			h.b.SGD(ws, gs, average, norms, hyper)
		}
		want.step(g, h.read(hyper))
		require.Equal(h, g, h.read(gs), "gradients do not change")
	}
	h.near(want.w, ws, 1e-5, r.name)
	if r.moments {
		h.near(want.m, ms, 1e-5, r.name)
		h.near(want.v, vs, 1e-5, r.name)
	}
	if r.average {
		h.near(want.average, average, 1e-5, r.name)
	}
}

// reference is the state of an update rule in float64.
type reference struct {
	rule
	w, m, v, average []float64
}

func newReference(w []float32, r rule) *reference {
	n := len(w)
	return &reference{rule: r, w: wide(w), m: make([]float64, n), v: make([]float64, n), average: make([]float64, n)}
}

func (r *reference) step(gradient, hyper []float32) {
	h := wide(hyper)
	g := wide(gradient)
	norm := 0.
	for i := range g {
		g[i] += h[nn.HyperL2] * r.w[i]
		norm += g[i] * g[i]
	}
	norm = math.Sqrt(norm)
	for i := range g {
		if clip := h[nn.HyperClip]; clip > 0 && norm >= clip {
			g[i] *= clip / norm
		}
		if r.moments {
			r.m[i] = h[nn.HyperBeta1]*r.m[i] + h[nn.HyperMix1]*g[i]
			r.v[i] = h[nn.HyperBeta2]*r.v[i] + h[nn.HyperMix2]*g[i]*g[i]
			r.w[i] -= h[nn.HyperRate] * r.m[i] / (math.Sqrt(r.v[i]) + h[nn.HyperEps])
		} else {
			r.w[i] -= h[nn.HyperRate] * g[i]
		}
		r.w[i] -= h[nn.HyperDecay] * r.w[i]
		r.average[i] -= h[nn.HyperAverage] * (r.average[i] - r.w[i])
	}
}

// testUpdateParts updates a parameter as a whole, and in two parts with the norms of the
// whole, and requires the same bits.
func testUpdateParts(h *harness) {
	const n, cut = nn.BlockSize + 100, nn.BlockSize
	w, g := h.normals(n), h.normals(n)
	hyper := h.hyper(map[int]float32{
		nn.HyperRate: .1, nn.HyperEps: 1e-3, nn.HyperBeta1: .9, nn.HyperMix1: .1,
		nn.HyperBeta2: .99, nn.HyperMix2: .01, nn.HyperClip: 1, nn.HyperAverage: .5,
	})
	gs, norms := h.upload(g...), h.b.Alloc(2)
	h.b.SquaredNorm(norms, gs, gs, hyper)
	var results [2][]float32
	for i, cuts := range [][]int{{0, n}, {0, cut, n}} {
		ws, ms, vs, as := h.upload(w...), h.b.Alloc(n), h.b.Alloc(n), h.b.Alloc(n)
		for j := 1; j < len(cuts); j++ {
			lo, hi := cuts[j-1], cuts[j]
			h.b.Adam(ws.Slice(lo, hi), gs.Slice(lo, hi), ms.Slice(lo, hi), vs.Slice(lo, hi), as.Slice(lo, hi), norms, hyper)
			h.b.SGD(ws.Slice(lo, hi), gs.Slice(lo, hi), as.Slice(lo, hi), norms, hyper)
		}
		results[i] = append(h.read(ws), h.read(as)...)
	}
	require.Equal(h, results[0], results[1])
}

// testSubnormal lets moments decay past the smallest normal number and requires 0.
func testSubnormal(h *harness) {
	const smallest = 0x1p-126
	ms, vs := h.upload(smallest, -smallest, 1), h.upload(smallest, smallest, 1)
	hyper := h.hyper(map[int]float32{nn.HyperBeta1: .5, nn.HyperBeta2: .5, nn.HyperEps: 1})
	h.b.Adam(h.upload(1, 1, 1), h.upload(0, 0, 0), ms, vs, nn.Buffer{}, nn.Buffer{}, hyper)
	require.Equal(h, []float32{0, 0, .5}, h.read(ms))
	require.Equal(h, []float32{0, 0, .5}, h.read(vs))
}
