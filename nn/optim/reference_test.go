package optim_test

import (
	"math"

	"github.com/ringtrain/ringtrain/nn"
)

// settings holds the hyper-parameters of the reference.
type settings struct {
	rate, beta1, beta2, eps, l2, clip float64
	decay                             bool
}

// thinc is Thinc's Optimizer.__call__ for one parameter in float64, written from its
// documentation rather than from the code under test.
type thinc struct {
	settings
	w, m, v, average []float64
	updates          float64
}

func newThinc(w []float32, s settings) *thinc {
	o := &thinc{settings: s}
	for _, x := range w {
		o.w = append(o.w, float64(x))
	}
	n := len(w)
	o.m, o.v, o.average = make([]float64, n), make([]float64, n), make([]float64, n)
	return o
}

func (o *thinc) update(gradient []float32) {
	o.updates++
	g := make([]float64, len(gradient))
	norm := 0.
	for i := range g {
		g[i] = float64(gradient[i])
		if !o.decay {
			g[i] += o.l2 * o.w[i]
		}
		norm += g[i] * g[i]
	}
	if norm = math.Sqrt(norm); o.clip != 0 && norm >= o.clip {
		for i := range g {
			g[i] *= o.clip / norm
		}
	}
	if o.beta1 > 0 && o.beta2 > 0 {
		o.adam(g)
	} else {
		for i := range g {
			o.w[i] -= o.rate * g[i]
		}
	}
	past := min((1+o.updates)/(10+o.updates), .9999)
	for i := range g {
		if o.decay {
			o.w[i] -= o.rate * o.l2 * o.w[i]
		}
		o.average[i] -= (1 - past) * (o.average[i] - o.w[i])
	}
}

func (o *thinc) adam(g []float64) {
	fix1 := 1 - math.Pow(o.beta1, o.updates)
	fix2 := 1 - math.Pow(o.beta2, o.updates)
	rate := o.rate * math.Sqrt(fix2) / fix1
	for i := range g {
		o.m[i] = o.beta1*o.m[i] + (1-o.beta1)*g[i]
		o.v[i] = o.beta2*o.v[i] + (1-o.beta2)*g[i]*g[i]
		o.w[i] -= rate * o.m[i] / (math.Sqrt(o.v[i]) + o.eps)
	}
}

// widen converts to float64.
func widen(b nn.Buffer) []float64 {
	var v []float64
	for _, x := range b.Float32s() {
		v = append(v, float64(x))
	}
	return v
}

// liu is RAdam for one parameter in float64: Algorithm 2 of Liu et al. 2019 as printed,
// with Eps in the denominator to avoid division by 0. Two fields describe how an
// implementation differs.
type liu struct {
	settings
	above float64 // use the second moment if ρ > above; 4 in the paper
	ahead float64 // t minus the number of updates; 0 in the paper

	w, m, v []float64
	updates float64
}

func (o *liu) update(g []float64) {
	o.updates++
	t := o.updates + o.ahead
	past1, past2 := math.Pow(o.beta1, t), math.Pow(o.beta2, t)
	rhoInf := 2/(1-o.beta2) - 1
	rho := rhoInf - 2*t*past2/(1-past2)
	for i := range g {
		o.v[i] = o.beta2*o.v[i] + (1-o.beta2)*g[i]*g[i]
		o.m[i] = o.beta1*o.m[i] + (1-o.beta1)*g[i]
		mHat := o.m[i] / (1 - past1)
		if rho > o.above {
			l := math.Sqrt(1-past2) / (math.Sqrt(o.v[i]) + o.eps)
			r := math.Sqrt((rho - 4) * (rho - 2) * rhoInf / ((rhoInf - 4) * (rhoInf - 2) * rho))
			o.w[i] -= o.rate * r * mHat * l
		} else {
			o.w[i] -= o.rate * mHat
		}
	}
}
