package optim

import "github.com/ringtrain/ringtrain/nn"

// A Recordable is an Optimizer that can say what an update takes without making
// it, so that a recording can hold the kernels and find the hyper-parameters of
// each step in memory.
type Recordable interface {
	Optimizer
	// Hyper returns the hyper-parameters of the update after step updates, and what
	// kernels take them. Where one set of hyper-parameters does not do for it the
	// Form is the zero Form, and the update is made by Update.
	Hyper(step int) ([nn.HyperLen]float32, Form)
}

var (
	_ Recordable = Adam{}
	_ Recordable = RAdam{}
	_ Recordable = SGD{}
)

// A Form is which kernels an update takes. Updates of equal Forms are the same
// kernels on the same Buffers, whatever their hyper-parameters. The zero Form is
// of no kernels.
type Form struct {
	rule  rule
	clips bool // norms are needed
	still bool // moments move; values and averages stay
	along bool // the gradient is the first moment
}

// String says which, for keys and errors.
func (f Form) String() string {
	name := map[rule]string{none: "none", bySGD: "SGD", byAdam: "Adam"}[f.rule]
	if f.clips {
		name += ", clipped"
	}
	return name
}

type rule uint8

const (
	none rule = iota
	bySGD
	byAdam
)

// formOf is the Form of a rule with these hyper-parameters.
func formOf(r rule, h [nn.HyperLen]float32) Form { return Form{rule: r, clips: h[nn.HyperClip] > 0} }

// Apply queues the kernels of a Form on all parameters: what Update does once it
// has put the hyper-parameters into hyper. It copies nothing, so a recording
// can hold it.
func Apply(f Form, b nn.Backend, p *nn.Params, s *State, hyper nn.Buffer) {
	apply(f, b, p, s, Whole(p), hyper)
}

// Spend is Apply to gradients that are multiplied by scale first, such as sums by
// 1 over the number of rows, and that are 0 afterwards. A backend that updates all
// parameters at once does the three at once.
func Spend(f Form, b nn.Backend, p *nn.Params, s *State, hyper nn.Buffer, scale float32) {
	if a, ok := b.(nn.ArenaUpdate); ok { // a Form that is not internal goes by the gradients
		s.arena(f, a, p, nn.Gradients{Arena: p.Grads, Scale: scale, Clear: true}, hyper)
		return
	}
	b.Scale(p.Grads, scale)
	Apply(f, b, p, s, hyper)
	b.Zero(p.Grads)
}

// apply calls the kernels of f for what part covers: those of the whole arena
// where that is all and the backend has them, else those of each parameter after
// its norm is known.
func apply(f Form, b nn.Backend, p *nn.Params, s *State, part Part, hyper nn.Buffer) {
	if a, ok := b.(nn.ArenaUpdate); ok && part.whole(p) {
		g := nn.Gradients{Arena: p.Grads, Scale: 1}
		if f.along {
			g.Arena = s.Slots[SlotM]
		}
		s.arena(f, a, p, g, hyper)
		return
	}
	for _, q := range part.params {
		norms := s.norms.Slice(0, nn.Blocks(q.Values.Len()))
		lo, hi := part.span(q)
		w, g, m := q.Values.Slice(lo, hi), q.Grads.Slice(lo, hi), s.slot(SlotM, q, lo, hi)
		average := s.slot(SlotAverage, q, lo, hi)
		if f.clips {
			b.SquaredNorm(norms, q.Grads, q.Values, hyper)
		}
		if f.still {
			average = nn.Buffer{}
		}
		if f.along {
			g = m
		}
		switch f.rule {
		case bySGD:
			b.SGD(w, g, average, norms, hyper)
		case byAdam:
			b.Adam(w, g, m, s.slot(SlotV, q, lo, hi), average, norms, hyper)
		}
	}
}

// arena is apply to all parameters at once.
func (s *State) arena(f Form, b nn.ArenaUpdate, p *nn.Params, g nn.Gradients, hyper nn.Buffer) {
	average := s.Slots[SlotAverage]
	if f.still {
		average = nn.Buffer{}
	}
	switch f.rule {
	case bySGD:
		b.SGDArena(p, g, average, s.norms, hyper)
	case byAdam:
		b.AdamArena(p, g, s.Slots[SlotM], s.Slots[SlotV], average, s.norms, hyper)
	}
}
