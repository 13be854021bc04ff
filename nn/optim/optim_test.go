package optim_test

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ringtrain/ringtrain/nn"
	"github.com/ringtrain/ringtrain/nn/cpu"
	"github.com/ringtrain/ringtrain/nn/optim"
)

// params returns two parameters; the first has several blocks.
func params(t *testing.T) (*nn.Params, *cpu.Backend) {
	be, b := cpu.New(cpu.Options{}), nn.NewBuilder(1)
	b.Param("W", []int{100, 90}, nn.Uniform(-1, 1))
	b.Param("b", []int{5}, nn.Uniform(-1, 1))
	p, err := b.Build(be)
	require.NoError(t, err)
	return p, be
}

// gradients fills p.Grads with numbers that depend on step; those of W have a norm of
// about 95·size.
func gradients(p *nn.Params, step int, size float64) {
	r := rand.New(rand.NewPCG(uint64(step), 7))
	for _, q := range p.List {
		for i := range q.Grads.Float32s() {
			q.Grads.Float32s()[i] = float32(size * r.NormFloat64())
		}
	}
}

func requireClose(t *testing.T, want, got []float64, what string) {
	t.Helper()
	require.Len(t, got, len(want), what)
	for i := range want {
		require.InDelta(t, want[i], got[i], 2e-6*(1+math.Abs(want[i])), "%s[%d]", what, i)
	}
}

// For every setting, five updates equal Thinc's rule in float64.
func TestUpdatesEqualThinc(t *testing.T) {
	adam := settings{rate: .01, beta1: .9, beta2: .999, eps: 1e-8, clip: 1, decay: true}
	for name, change := range map[string]func(s *settings, size *float64){
		"defaults":           func(*settings, *float64) {},
		"no clip":            func(s *settings, _ *float64) { s.clip = 0 },
		"below clip":         func(_ *settings, size *float64) { *size = .001 },
		"weight decay":       func(s *settings, _ *float64) { s.l2 = .1 },
		"L2 in the gradient": func(s *settings, _ *float64) { s.l2, s.decay = .1, false },
		"L2 without clip":    func(s *settings, _ *float64) { s.l2, s.decay, s.clip = .1, false, 0 },
		"other betas":        func(s *settings, _ *float64) { s.beta1, s.beta2, s.eps = .5, .8, .01 },
		"betas of 0":         func(s *settings, _ *float64) { s.beta1, s.beta2 = 0, 0 },
	} {
		t.Run(name, func(t *testing.T) {
			s, size := adam, 1.
			change(&s, &size)
			checkAgainstThinc(t, s, size, optim.Adam{
				LearnRate: optim.Constant(s.rate), Beta1: optim.Constant(s.beta1), Beta2: optim.Constant(s.beta2),
				Eps: optim.Constant(s.eps), L2: optim.Constant(s.l2), GradClip: optim.Constant(s.clip),
				L2IsWeightDecay: s.decay, UseAverages: true,
			})
			if s.beta2 == 0 {
				checkAgainstThinc(t, s, size, optim.SGD{
					LearnRate: optim.Constant(s.rate), L2: optim.Constant(s.l2), GradClip: optim.Constant(s.clip),
					L2IsWeightDecay: s.decay, UseAverages: true,
				})
			}
		})
	}
}

func checkAgainstThinc(t *testing.T, s settings, size float64, o optim.Optimizer) {
	t.Helper()
	p, be := params(t)
	state := optim.NewState(be, p, o)
	var want []*thinc
	for _, q := range p.List {
		want = append(want, newThinc(q.Values.Float32s(), s))
	}
	for step := range 5 {
		gradients(p, step, size)
		before := append([]float32(nil), p.Grads.Float32s()...)
		optim.Step(o, be, p, state)
		require.Equal(t, step+1, state.Step)
		require.Equal(t, before, p.Grads.Float32s(), "gradients do not change")
		for i, q := range p.List {
			want[i].update(q.Grads.Float32s())
			requireClose(t, want[i].w, widen(q.Values), q.Name)
			hi := q.Offset + q.Values.Len()
			requireClose(t, want[i].average, widen(state.Slots[optim.SlotAverage].Slice(q.Offset, hi)), "average")
			if m, ok := state.Slots[optim.SlotM]; ok && s.beta2 > 0 {
				requireClose(t, want[i].m, widen(m.Slice(q.Offset, hi)), "m")
				requireClose(t, want[i].v, widen(state.Slots[optim.SlotV].Slice(q.Offset, hi)), "v")
			}
		}
	}
}

// Clipping is per parameter: a huge gradient of one does not shrink another's.
func TestClipIsPerParameter(t *testing.T) {
	p, be := params(t)
	o := optim.DefaultSGD(1)
	state := optim.NewState(be, p, o)
	p.List[0].Grads.Float32s()[3] = 1e6
	p.List[1].Grads.Float32s()[0] = .5
	w := append([]float32(nil), p.Values.Float32s()...)
	optim.Step(o, be, p, state)
	require.InDelta(t, w[3]-1, p.List[0].Values.Float32s()[3], 1e-6)
	require.InDelta(t, w[p.List[1].Offset]-.5, p.List[1].Values.Float32s()[0], 1e-6)
}

func TestDefaults(t *testing.T) {
	a := optim.DefaultAdam()
	require.Equal(t, []float64{.001, .9, .999, 1e-8, 0, 1}, []float64{
		a.LearnRate(0), a.Beta1(0), a.Beta2(0), a.Eps(0), a.L2(0), a.GradClip(0),
	})
	require.True(t, a.L2IsWeightDecay && a.UseAverages)
	require.Equal(t, []string{"m", "v", "average"}, a.Slots())
	a.UseAverages = false
	require.Equal(t, []string{"m", "v"}, a.Slots())
	s := optim.DefaultSGD(.1)
	require.Equal(t, []float64{.1, 0, 1}, []float64{s.LearnRate(5), s.L2(5), s.GradClip(5)})
	require.Equal(t, []string{"average"}, s.Slots())
	require.Empty(t, optim.SGD{}.Slots())
}

// The average of a long run follows the values, however many updates there were.
func TestAverageOfManyUpdates(t *testing.T) {
	for _, o := range []optim.Recordable{optim.DefaultAdam(), optim.DefaultRAdam(), optim.DefaultSGD(.1)} {
		for step, want := range map[int]float32{0: 9. / 11, 89_990: 1e-4, 10_000_000: 1e-4} {
			h, _ := o.Hyper(step)
			require.InDelta(t, want, h[nn.HyperAverage], 1e-7, "%T, step %d", o, step)
		}
	}
}

// A schedule is given the number of updates done. A nil schedule is 0.
func TestSchedulesAreUsed(t *testing.T) {
	p, be := params(t)
	var asked []int
	o := optim.SGD{LearnRate: func(step int) float64 {
		asked = append(asked, step)
		return float64(step)
	}}
	state := optim.NewState(be, p, o)
	state.Step = 7
	p.List[1].Grads.Float32s()[0] = 2
	w := p.List[1].Values.Float32s()[0]
	optim.Step(o, be, p, state)
	optim.Step(o, be, p, state)
	require.Equal(t, []int{7, 8}, asked)
	require.InDelta(t, w-2*7-2*8, p.List[1].Values.Float32s()[0], 1e-5)
}

// Updating in parts gives the same bits as one whole update.
func TestPartsEqualWhole(t *testing.T) {
	o := optim.DefaultAdam()
	o.L2 = optim.Constant(.01)
	whole, be := params(t)
	state := optim.NewState(be, whole, o)
	for step := range 3 {
		gradients(whole, step, 1)
		optim.Step(o, be, whole, state)
	}

	cut, be := params(t)
	w, b := cut.List[0], cut.List[1]
	parts := optim.NewState(be, cut, o)
	for step := range 3 {
		gradients(cut, step, 1)
		for _, part := range []optim.Part{optim.Only(b), optim.Only(w)} {
			o.Update(be, cut, parts, part)
		}
		parts.Step++
	}
	require.Equal(t, whole.Values.Float32s(), cut.Values.Float32s())
	for name := range state.Slots {
		require.Equal(t, state.Slots[name].Float32s(), parts.Slots[name].Float32s(), name)
	}
}

func TestPartChangesNothingElse(t *testing.T) {
	p, be := params(t)
	o := optim.DefaultAdam()
	state := optim.NewState(be, p, o)
	gradients(p, 0, 1)
	before := append([]float32(nil), p.Values.Float32s()...)
	o.Update(be, p, state, optim.Only(p.List[1]))
	require.Zero(t, state.Step)
	lo := p.List[1].Offset
	hi := lo + p.List[1].Values.Len()
	after := p.Values.Float32s()
	require.Equal(t, before[:lo], after[:lo])
	require.Equal(t, before[hi:], after[hi:])
	for i := lo; i < hi; i++ {
		require.NotEqual(t, before[i], after[i])
	}
}

// A state restored from Step and Slots continues with the same bits.
func TestStateSurvivesACheckpoint(t *testing.T) {
	o := optim.DefaultAdam()
	p, be := params(t)
	state := optim.NewState(be, p, o)
	gradients(p, 0, 1)
	optim.Step(o, be, p, state)

	q, be2 := params(t)
	restored := optim.NewState(be2, q, o)
	restored.Step = state.Step
	be2.Copy(q.Values, p.Values.Float32s())
	for name, slot := range state.Slots {
		be2.Copy(restored.Slots[name], slot.Float32s())
	}
	gradients(p, 1, 1)
	gradients(q, 1, 1)
	optim.Step(o, be, p, state)
	optim.Step(o, be2, q, restored)
	require.Equal(t, p.Values.Float32s(), q.Values.Float32s())
}

func TestUpdateDoesNotAllocateArrays(t *testing.T) {
	p, be := params(t)
	var o optim.Optimizer = optim.DefaultAdam()
	state := optim.NewState(be, p, o)
	require.LessOrEqual(t, testing.AllocsPerRun(10, func() { optim.Step(o, be, p, state) }), 3.)
}

// Pieces of a parameter in arenas of their own, as on several servers, give the bits of one
// update: with clipping, and if L2 is part of the gradient.
func TestPiecesEqualWhole(t *testing.T) {
	adam, radam, sgd := optim.DefaultAdam(), optim.DefaultRAdam(), optim.DefaultSGD(.1)
	adam.L2, adam.L2IsWeightDecay = optim.Constant(.1), false
	for name, o := range map[string]optim.Recordable{"Adam": adam, "RAdam": radam, "SGD": sgd} {
		whole, be := params(t)
		w := whole.List[0]
		state := optim.NewState(be, whole, o)
		cuts := []int{0, nn.BlockSize, w.Values.Len()}
		var pieces []*nn.Params
		var states []*optim.State
		for i := range cuts[1:] {
			n := cuts[i+1] - cuts[i]
			p := &nn.Params{Values: be.Alloc(n), Grads: be.Alloc(n)}
			p.List = []*nn.Param{{Name: w.Name, Shape: []int{n}, Values: p.Values, Grads: p.Grads}}
			be.Copy(p.Values, w.Values.Float32s()[cuts[i]:cuts[i+1]])
			pieces, states = append(pieces, p), append(states, optim.NewState(be, p, o))
		}
		norms := be.Alloc(nn.Blocks(w.Values.Len()))
		for step := range 8 {
			gradients(whole, step, 1)
			for i, p := range pieces {
				be.Copy(p.Grads, w.Grads.Float32s()[cuts[i]:cuts[i+1]])
				states[i].BlockNorms(o, be, p.List[0], norms.Slice(cuts[i]/nn.BlockSize, nn.Blocks(cuts[i+1])))
			}
			optim.Step(o, be, whole, state)
			for i, p := range pieces {
				o.Update(be, p, states[i], optim.PieceOf(p.List[0], norms))
				states[i].Step++
				require.Equal(t, w.Values.Float32s()[cuts[i]:cuts[i+1]], p.Values.Float32s(), "%s, step %d, piece %d", name, step, i)
			}
		}
	}
}
