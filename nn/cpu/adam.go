package cpu

import (
	"math"

	"github.com/ringtrain/ringtrain/nn"
)

// The terms of an update, in the order in which the kernels read them.
const (
	termClip = iota
	termL2
	termRate
	termDecay
	termEps
	termBeta1
	termMix1
	termBeta2
	termMix2
	termCount
)

type terms [termCount]float32

func newTerms(h []float32, norms nn.Buffer) terms {
	return terms{
		termClip: clipScale(norms, h[nn.HyperClip]), termL2: h[nn.HyperL2],
		termRate: h[nn.HyperRate], termDecay: h[nn.HyperDecay], termEps: h[nn.HyperEps],
		termBeta1: h[nn.HyperBeta1], termMix1: h[nn.HyperMix1],
		termBeta2: h[nn.HyperBeta2], termMix2: h[nn.HyperMix2],
	}
}

// Adam implements nn.Update.
func (b *Backend) Adam(w, g, m, v, average, norms, hyper nn.Buffer) {
	h := hyper.Float32s()
	t := newTerms(h, norms)
	kernel := newUpdateKernel(&t)
	ws, as := w.Float32s(), average.Float32s()
	gs, ms, vs := g.Float32s()[:len(ws)], m.Float32s()[:len(ws)], v.Float32s()[:len(ws)]
	eachBlock(len(ws), func(lo, hi int) {
		ws, gs, ms, vs := ws[lo:hi], gs[lo:hi], ms[lo:hi], vs[lo:hi]
		done := kernel.adam(ws, gs, ms, vs)
		adamLoop(ws[done:], gs[done:], ms[done:], vs[done:], &t)
		if len(as) > 0 {
			follow(as[lo:hi], ws, h[nn.HyperAverage])
		}
	})
}

func adamLoop(w, g, m, v []float32, t *terms) {
	for i, wi := range w {
		gi := t[termClip] * (g[i] + float32(t[termL2]*wi))
		mi := float32(t[termBeta1]*m[i]) + float32(t[termMix1]*gi)
		vi := float32(t[termBeta2]*v[i]) + float32(t[termMix2]*gi*gi)
		// Without gradients, the moments of a weight would decay to subnormal numbers and
		// stay there, which makes every step many times slower.
		if mi < smallestNormal && mi > -smallestNormal {
			mi = 0
		}
		if vi < smallestNormal {
			vi = 0
		}
		m[i], v[i] = mi, vi
		wi -= t[termRate] * mi / (float32(math.Sqrt(float64(vi))) + t[termEps])
		w[i] = wi - float32(t[termDecay]*wi)
	}
}

// SGD implements nn.Update.
func (b *Backend) SGD(w, g, average, norms, hyper nn.Buffer) {
	h := hyper.Float32s()
	t := newTerms(h, norms)
	kernel := newUpdateKernel(&t)
	ws, as := w.Float32s(), average.Float32s()
	gs := g.Float32s()[:len(ws)]
	eachBlock(len(ws), func(lo, hi int) {
		ws, gs := ws[lo:hi], gs[lo:hi]
		done := kernel.sgd(ws, gs)
		sgdLoop(ws[done:], gs[done:], &t)
		if len(as) > 0 {
			follow(as[lo:hi], ws, h[nn.HyperAverage])
		}
	})
}

func sgdLoop(w, g []float32, t *terms) {
	for i, wi := range w {
		wi -= float32(t[termRate] * float32(t[termClip]*(g[i]+float32(t[termL2]*wi))))
		w[i] = wi - float32(t[termDecay]*wi)
	}
}

// eachBlock calls f with the bounds of each block of n elements, so that a second
// operation on a block finds it in cache.
func eachBlock(n int, f func(lo, hi int)) {
	for lo := 0; lo < n; lo += nn.BlockSize {
		f(lo, min(lo+nn.BlockSize, n))
	}
}

// follow moves the average a towards w by the fraction share.
func follow(a, w []float32, share float32) {
	done := fastFollow(a, w, share)
	followLoop(a[done:], w[done:], share)
}

func followLoop(a, w []float32, share float32) {
	for i, x := range a {
		a[i] = x - float32(share*(x-w[i]))
	}
}

// clipScale returns the factor that clips a gradient with these block norms.
func clipScale(norms nn.Buffer, clip float32) float32 {
	if clip <= 0 {
		return 1
	}
	var sum float64
	for _, s := range norms.Float32s() {
		sum += float64(s)
	}
	norm := math.Sqrt(sum)
	if !(norm >= float64(clip)) { // a NaN is not clipped, so it stays where it arose
		return 1
	}
	return float32(float64(clip) / norm)
}
