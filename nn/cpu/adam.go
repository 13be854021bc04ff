package cpu

import (
	"math"

	"github.com/ringtrain/ringtrain/nn"
)

// The terms of an update, in the order in which the kernels read them.
const (
	termScale = iota // of gradients, before anything else
	termClip
	termL2
	termRate
	termDecay
	termShare // by which the average approaches the weight
	termEps
	termBeta1
	termMix1
	termBeta2
	termMix2
	termCount
)

type terms [termCount]float32

func newTerms(h []float32, scale float32, norms []float32) terms {
	return terms{
		termScale: scale, termClip: clipScale(norms, h[nn.HyperClip]), termL2: h[nn.HyperL2],
		termRate: h[nn.HyperRate], termDecay: h[nn.HyperDecay], termShare: h[nn.HyperAverage], termEps: h[nn.HyperEps],
		termBeta1: h[nn.HyperBeta1], termMix1: h[nn.HyperMix1],
		termBeta2: h[nn.HyperBeta2], termMix2: h[nn.HyperMix2],
	}
}

// Adam implements nn.Update.
func (b *Backend) Adam(w, g, m, v, average, norms, hyper nn.Buffer) {
	t := newTerms(hyper.Float32s(), 1, norms.Float32s())
	adam(&t, operands{w.Float32s(), g.Float32s(), m.Float32s(), v.Float32s(), average.Float32s()}, false)
}

// SGD implements nn.Update.
func (b *Backend) SGD(w, g, average, norms, hyper nn.Buffer) {
	t := newTerms(hyper.Float32s(), 1, norms.Float32s())
	sgd(&t, operands{w: w.Float32s(), g: g.Float32s(), average: average.Float32s()}, false)
}

// operands are what an update reads and writes: parts of the same length of each arena.
// Without moments or averages, those are empty.
type operands struct{ w, g, m, v, average []float32 }

// piece is the number of elements that an update finishes before it begins the next. Five
// operands of this length fit into the L1 cache.
const piece = 1024

// slice returns elements lo to hi of all operands.
func (o operands) slice(lo, hi int) operands {
	part := operands{w: o.w[lo:hi], g: o.g[lo:hi]}
	if len(o.m) > 0 {
		part.m, part.v = o.m[lo:hi], o.v[lo:hi]
	}
	if len(o.average) > 0 {
		part.average = o.average[lo:hi]
	}
	return part
}

// pieces calls f with each piece of o in turn. It then sets the gradients of the piece to 0
// if they are spent.
func (o operands) pieces(spent bool, f func(piece operands)) {
	for lo := 0; lo < len(o.w); lo += piece {
		each := o.slice(lo, min(lo+piece, len(o.w)))
		f(each)
		if spent {
			clear(each.g)
		}
	}
}

func adam(t *terms, o operands, spent bool) {
	kernel := newUpdateKernel(t)
	o.pieces(spent, func(o operands) {
		adamLoop(o.slice(kernel.adam(o), len(o.w)), t)
	})
}

func adamLoop(o operands, t *terms) {
	for i, wi := range o.w {
		gi := t[termClip] * (float32(t[termScale]*o.g[i]) + float32(t[termL2]*wi))
		mi := float32(t[termBeta1]*o.m[i]) + float32(t[termMix1]*gi)
		vi := float32(t[termBeta2]*o.v[i]) + float32(t[termMix2]*gi*gi)
		// Without gradients, the moments of a weight would decay to subnormal numbers and
		// stay there, which makes every step many times slower.
		if mi < smallestNormal && mi > -smallestNormal {
			mi = 0
		}
		if vi < smallestNormal {
			vi = 0
		}
		o.m[i], o.v[i] = mi, vi
		wi -= t[termRate] * mi / (float32(math.Sqrt(float64(vi))) + t[termEps])
		o.w[i] = wi - float32(t[termDecay]*wi)
	}
	followLoop(o.average, o.w, t[termShare])
}

func sgd(t *terms, o operands, spent bool) {
	kernel := newUpdateKernel(t)
	o.pieces(spent, func(o operands) {
		sgdLoop(o.slice(kernel.sgd(o), len(o.w)), t)
	})
}

func sgdLoop(o operands, t *terms) {
	for i, wi := range o.w {
		gi := t[termClip] * (float32(t[termScale]*o.g[i]) + float32(t[termL2]*wi))
		wi -= float32(t[termRate] * gi)
		o.w[i] = wi - float32(t[termDecay]*wi)
	}
	followLoop(o.average, o.w, t[termShare])
}

// followLoop moves the averages a towards w by the fraction share.
func followLoop(a, w []float32, share float32) {
	for i, x := range a {
		a[i] = x - float32(share*(x-w[i]))
	}
}

// clipScale returns the factor that clips a gradient with these block norms.
func clipScale(norms []float32, clip float32) float32 {
	if clip <= 0 {
		return 1
	}
	var sum float64
	for _, s := range norms {
		sum += float64(s)
	}
	norm := math.Sqrt(sum)
	if !(norm >= float64(clip)) { // a NaN is not clipped, so it stays where it arose
		return 1
	}
	return float32(float64(clip) / norm)
}
