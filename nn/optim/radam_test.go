package optim_test

import (
	"fmt"
	"math"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ringtrain/ringtrain/nn/optim"
)

func radam(s settings) optim.RAdam {
	return optim.RAdam{
		LearnRate: optim.Constant(s.rate), Beta1: optim.Constant(s.beta1), Beta2: optim.Constant(s.beta2),
		Eps: optim.Constant(s.eps), L2: optim.Constant(s.l2), GradClip: optim.Constant(s.clip),
		L2IsWeightDecay: s.decay, UseAverages: true,
	}
}

// RAdam is the paper's algorithm with Thinc's two changes, both for steps along the first
// moment and for adaptive ones.
func TestRAdamEqualsPaper(t *testing.T) {
	plain := settings{rate: .01, beta1: .9, beta2: .999, eps: 1e-8}
	for name, change := range map[string]func(s *settings){
		"defaults":      func(*settings) {},
		"short memory":  func(s *settings) { s.beta2 = .9 }, // ρ∞ is 19
		"never adapts":  func(s *settings) { s.beta2 = .6 }, // ρ∞ is 4
		"no second":     func(s *settings) { s.beta2 = 0 },
		"no first":      func(s *settings) { s.beta1 = 0 },
		"other epsilon": func(s *settings) { s.eps = .1 },
	} {
		t.Run(name, func(t *testing.T) {
			s := plain
			change(&s)
			o := radam(s)
			p, be := params(t)
			state := optim.NewState(be, p, o)
			var want []*liu
			for _, q := range p.List {
				n := q.Values.Len()
				want = append(want, &liu{settings: s, above: math.Nextafter(5, 0), ahead: 1, w: widen(q.Values), m: make([]float64, n), v: make([]float64, n)})
			}
			for step := range 30 {
				gradients(p, step, .1)
				optim.Step(o, be, p, state)
				for i, q := range p.List {
					want[i].update(widen(q.Grads))
					hi := q.Offset + q.Values.Len()
					requireClose(t, want[i].m, widen(state.Slots[optim.SlotM].Slice(q.Offset, hi)), "m")
					requireClose(t, want[i].v, widen(state.Slots[optim.SlotV].Slice(q.Offset, hi)), "v")
					requireClose(t, want[i].w, widen(q.Values), fmt.Sprint(q.Name, " after step ", step))
				}
			}
		})
	}
}

// In steps along the first moment Thinc divides by 1-beta1² in the first update, not by
// 1-beta1 as in the paper. The fifth update is the first adaptive one.
func TestRAdamDiffersFromPaperLikeThinc(t *testing.T) {
	s := settings{rate: .5, beta1: .9, beta2: .999, eps: 1e-8}
	o := radam(s)
	p, be := params(t)
	state := optim.NewState(be, p, o)
	b := p.List[1]
	for step := range 5 {
		b.Grads.Float32s()[0] = 3
		before := float64(b.Values.Float32s()[0])
		optim.Step(o, be, p, state)
		n := float64(step + 1)
		m := 3 * (1 - math.Pow(.9, n))
		along := .5 * m / (1 - math.Pow(.9, n+1))
		moved := before - float64(b.Values.Float32s()[0])
		if step < 4 {
			require.InDelta(t, along, moved, 1e-5, "update %v", n)
		} else {
			require.Less(t, moved, along/4, "update %v", n)
		}
	}
}

// The rest of the update is Adam's: L2, clipping, decay and averages.
func TestRAdamSharesAdamsTerms(t *testing.T) {
	for name, change := range map[string]func(s *settings){
		"clip":               func(s *settings) { s.clip = 1 },
		"weight decay":       func(s *settings) { s.l2, s.decay = .1, true },
		"L2 in the gradient": func(s *settings) { s.l2, s.clip = .1, 1 },
	} {
		t.Run(name, func(t *testing.T) {
			s := settings{rate: .01, beta1: .9, beta2: .999, eps: 1e-8}
			change(&s)
			o := radam(s)
			p, be := params(t)
			state := optim.NewState(be, p, o)
			q := p.List[0]
			n := q.Values.Len()
			want := &liu{settings: s, above: math.Nextafter(5, 0), ahead: 1, w: widen(q.Values), m: make([]float64, n), v: make([]float64, n)}
			average := make([]float64, n)
			for step := range 8 {
				gradients(p, step, 1)
				optim.Step(o, be, p, state)
				g := widen(q.Grads)
				if !s.decay {
					for i := range g {
						g[i] += s.l2 * want.w[i]
					}
				}
				if norm := length(g); s.clip > 0 && norm >= s.clip {
					for i := range g {
						g[i] *= s.clip / norm
					}
				}
				want.update(g)
				past := min((1+want.updates)/(10+want.updates), .9999)
				for i := range want.w {
					if s.decay {
						want.w[i] -= s.rate * s.l2 * want.w[i]
					}
					average[i] -= (1 - past) * (average[i] - want.w[i])
				}
				requireClose(t, want.w, widen(q.Values), "w")
				requireClose(t, average, widen(state.Slots[optim.SlotAverage].Slice(q.Offset, q.Offset+n)), "average")
			}
		})
	}
}

func length(g []float64) float64 {
	sum := 0.
	for _, x := range g {
		sum += x * x
	}
	return math.Sqrt(sum)
}

// Without gradients nothing moves, whatever Eps is.
func TestRAdamWithoutGradients(t *testing.T) {
	o := optim.DefaultRAdam()
	o.Eps = nil
	p, be := params(t)
	before := append([]float32(nil), p.Values.Float32s()...)
	state := optim.NewState(be, p, o)
	for range 4 {
		optim.Step(o, be, p, state)
	}
	require.Equal(t, before, p.Values.Float32s())
}

func TestRAdamByPartsEqualsWhole(t *testing.T) {
	o := optim.DefaultRAdam()
	o.L2 = optim.Constant(.01)
	whole, be := params(t)
	cut, be2 := params(t)
	state, parts := optim.NewState(be, whole, o), optim.NewState(be2, cut, o)
	for step := range 8 {
		gradients(whole, step, 1)
		gradients(cut, step, 1)
		optim.Step(o, be, whole, state)
		for _, part := range []optim.Part{optim.Only(cut.List[1]), optim.Only(cut.List[0])} {
			o.Update(be2, cut, parts, part)
		}
		parts.Step++
		require.Equal(t, whole.Values.Float32s(), cut.Values.Float32s(), "step %d", step)
	}
	require.Equal(t, []string{"m", "v", "average"}, o.Slots())
}
