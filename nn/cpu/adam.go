package cpu

import (
	"math"

	"github.com/ringtrain/ringtrain/nn"
)

// Adam implements nn.Update in one pass over the parameter, and one over its
// average.
func (b *Backend) Adam(w, g, m, v, average, norms, hyper nn.Buffer) {
	h := hyper.Float32s()
	clip := clipScale(norms, h[nn.HyperClip])
	rate, eps, l2, decay := h[nn.HyperRate], h[nn.HyperEps], h[nn.HyperL2], h[nn.HyperDecay]
	beta1, mix1, beta2, mix2 := h[nn.HyperBeta1], h[nn.HyperMix1], h[nn.HyperBeta2], h[nn.HyperMix2]
	ws := w.Float32s()
	n := len(ws)
	gs, ms, vs := g.Float32s()[:n], m.Float32s()[:n], v.Float32s()[:n]
	for i, wi := range ws {
		gi := clip * (gs[i] + l2*wi)
		mi := beta1*ms[i] + mix1*gi
		vi := beta2*vs[i] + mix2*gi*gi
		// The moments of a weight that gets no gradient any more would shrink to
		// subnormal numbers, stay there, and make each step many times slower.
		if mi < smallestNormal && mi > -smallestNormal {
			mi = 0
		}
		if vi < smallestNormal {
			vi = 0
		}
		ms[i], vs[i] = mi, vi
		wi -= rate * mi / (float32(math.Sqrt(float64(vi))) + eps)
		ws[i] = wi - decay*wi
	}
	follow(average, ws, h[nn.HyperAverage])
}

// SGD implements nn.Update in one pass over the parameter, and one over its
// average.
func (b *Backend) SGD(w, g, average, norms, hyper nn.Buffer) {
	h := hyper.Float32s()
	clip := clipScale(norms, h[nn.HyperClip])
	rate, l2, decay := h[nn.HyperRate], h[nn.HyperL2], h[nn.HyperDecay]
	ws := w.Float32s()
	gs := g.Float32s()[:len(ws)]
	for i, wi := range ws {
		wi -= rate * (clip * (gs[i] + l2*wi))
		ws[i] = wi - decay*wi
	}
	follow(average, ws, h[nn.HyperAverage])
}

// follow moves an average, which may be empty, by share towards w.
func follow(average nn.Buffer, w []float32, share float32) {
	as := average.Float32s()
	w = w[:len(as)]
	for i, a := range as {
		as[i] = a - share*(a-w[i])
	}
}

// clipScale returns what a gradient with these block norms is multiplied by.
func clipScale(norms nn.Buffer, clip float32) float32 {
	if clip <= 0 {
		return 1
	}
	var sum float64
	for _, s := range norms.Float32s() {
		sum += float64(s)
	}
	norm := math.Sqrt(sum)
	if !(norm >= float64(clip)) { // a NaN stays where it arose
		return 1
	}
	return float32(float64(clip) / norm)
}
