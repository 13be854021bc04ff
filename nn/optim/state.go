package optim

import "github.com/ringtrain/ringtrain/nn"

// An Optimizer makes updates from gradients. It is safe for concurrent use with
// different States.
type Optimizer interface {
	// Slots names the arenas that the optimizer keeps, as long as the values and
	// zero before the first step: "m", "v", "average".
	Slots() []string
	// Update makes update number s.Step+1 of what part covers, from p.Grads,
	// which hold the mean gradient. It changes p.Values and s.Slots, and neither
	// p.Grads nor s.Step: the caller zeroes the one and counts the other when
	// all parts are done. Norms for clipping are of the whole parameter's
	// gradient, which must be complete even if part is some blocks of it. s was
	// made by NewState for this optimizer and p.
	Update(b nn.Backend, p *nn.Params, s *State, part Part)
}

// Names of slots.
const (
	SlotM       = "m"       // first moment
	SlotV       = "v"       // second moment
	SlotAverage = "average" // moving average of the values
)

// State is what an optimizer remembers between steps. Step and the contents of
// Slots are all that a checkpoint needs.
type State struct {
	Step  int                  // updates done so far
	Slots map[string]nn.Buffer // arenas with the offsets of nn.Params

	hyper nn.Buffer // nn.HyperLen values of the update in progress
	norms nn.Buffer // block norms of all parameters, or those of the one in progress
}

// NewState allocates the state of o for p on b, before the first step.
func NewState(b nn.Backend, p *nn.Params, o Optimizer) *State {
	s := &State{
		Slots: make(map[string]nn.Buffer),
		hyper: b.Alloc(nn.HyperLen),
		norms: b.Alloc(p.Blocks()),
	}
	for _, name := range o.Slots() {
		s.Slots[name] = b.Alloc(p.Values.Len())
	}
	return s
}

// Step updates every parameter and counts the step.
func Step(o Optimizer, b nn.Backend, p *nn.Params, s *State) {
	o.Update(b, p, s, Whole(p))
	s.Step++
}

// slot returns elements lo to hi of parameter q in a slot, or an empty Buffer if
// the state has no such slot.
func (s *State) slot(name string, q *nn.Param, lo, hi int) nn.Buffer {
	arena, ok := s.Slots[name]
	if !ok {
		return nn.Buffer{}
	}
	return arena.Slice(q.Offset+lo, q.Offset+hi)
}
