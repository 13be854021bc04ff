package optim

import "github.com/ringtrain/ringtrain/nn"

// A Recordable is an Optimizer that can describe an update without performing
// it. A recording then holds the kernels and reads the hyper-parameters of
// each step from memory.
type Recordable interface {
	Optimizer
	// Hyper returns the hyper-parameters of the update that follows step updates, and the
	// kernels that use them. An update that needs more than one set of hyper-parameters
	// has the zero Form and must be done by Update.
	Hyper(step int) ([nn.HyperLen]float32, Form)
}

var (
	_ Recordable = Adam{}
	_ Recordable = RAdam{}
	_ Recordable = SGD{}
)

// A Form identifies the kernels of an update. Updates with equal Forms run the
// same kernels on the same Buffers, whatever their hyper-parameters. The zero
// Form has no kernels.
type Form struct {
	rule        rule
	clips       bool // needs norms
	momentsOnly bool // updates moments but not values and averages
	alongMoment bool // uses the first moment as the gradient
}

// String returns a description for recording keys and errors.
func (f Form) String() string {
	name := map[rule]string{noRule: "none", ruleSGD: "SGD", ruleAdam: "Adam"}[f.rule]
	if f.clips {
		name += ", clipped"
	}
	return name
}

type rule uint8

const (
	noRule rule = iota
	ruleSGD
	ruleAdam
)

// formOf returns the Form of a rule with these hyper-parameters.
func formOf(r rule, h [nn.HyperLen]float32) Form { return Form{rule: r, clips: h[nn.HyperClip] > 0} }

// Apply queues the kernels of a Form for all parameters: what Update does after copying
// the hyper-parameters to hyper. It copies nothing, so a recording can contain it.
func (f Form) Apply(b nn.Backend, p *nn.Params, s *State, hyper nn.Buffer) {
	s.apply(f, b, p, Whole(p), hyper)
}

// Spend is like Apply, but first multiplies the gradients by scale, such as 1
// over the number of rows, and zeroes them afterwards. An nn.ArenaUpdate backend
// does all three at once.
func (f Form) Spend(b nn.Backend, p *nn.Params, s *State, hyper nn.Buffer, scale float32) {
	if a, ok := b.(nn.ArenaUpdate); ok { // exported Forms never set alongMoment
		s.arena(f, a, p, nn.Gradients{Arena: p.Grads, Scale: scale, Clear: true}, hyper)
		for _, q := range statistics(p.List) {
			b.Scale(q.Grads, scale)
			s.follow(b, q)
			b.Zero(q.Grads)
		}
		return
	}
	b.Scale(p.Grads, scale)
	f.Apply(b, p, s, hyper)
	b.Zero(p.Grads)
}

// update copies h to the Buffer that the kernels read, and calls the kernels of f.
func (s *State) update(f Form, h [nn.HyperLen]float32, b nn.Backend, p *nn.Params, part Part) {
	b.Copy(s.hyper, h[:])
	s.apply(f, b, p, part, s.hyper)
}

// apply calls the kernels of f for part. If part is everything and the backend
// can update whole arenas, it uses that; otherwise it updates each parameter
// after computing its norm.
func (s *State) apply(f Form, b nn.Backend, p *nn.Params, part Part, hyper nn.Buffer) {
	if a, ok := b.(nn.ArenaUpdate); ok && part.whole(p) {
		g := nn.Gradients{Arena: p.Grads, Scale: 1}
		if f.alongMoment {
			g.Arena = s.Slots[SlotM]
		}
		s.arena(f, a, p, g, hyper)
		s.statistics(f, b, part)
		return
	}
	for _, q := range part.params {
		if q.Momentum > 0 {
			continue
		}
		norms, given := part.norms, part.norms.Len() > 0
		if !given {
			norms = s.norms.Slice(0, nn.Blocks(q.Values.Len()))
		}
		g, m, average := q.Grads, s.slot(SlotM, q), s.slot(SlotAverage, q)
		if f.clips && !given {
			b.SquaredNorm(norms, q.Grads, q.Values, hyper)
		}
		if f.momentsOnly {
			average = nn.Buffer{}
		}
		if f.alongMoment {
			g = m
		}
		switch f.rule {
		case ruleSGD:
			b.SGD(q.Values, g, average, norms, hyper)
		case ruleAdam:
			b.Adam(q.Values, g, m, s.slot(SlotV, q), average, norms, hyper)
		}
	}
	s.statistics(f, b, part)
}

// arena is apply for all parameters at once.
func (s *State) arena(f Form, b nn.ArenaUpdate, p *nn.Params, g nn.Gradients, hyper nn.Buffer) {
	average := s.Slots[SlotAverage]
	if f.momentsOnly {
		average = nn.Buffer{}
	}
	switch f.rule {
	case ruleSGD:
		b.SGDArena(p, g, average, s.norms, hyper)
	case ruleAdam:
		b.AdamArena(p, g, s.Slots[SlotM], s.Slots[SlotV], average, s.norms, hyper)
	}
}
