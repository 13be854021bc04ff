package optim

import "github.com/ringtrain/ringtrain/nn"

// An Optimizer updates parameters from gradients. It is safe for concurrent use
// with different States.
type Optimizer interface {
	// Slots returns the names of the arenas that the optimizer keeps: "m", "v",
	// "average". Each is as long as the values, and zero before the first step.
	Slots() []string
	// Update performs update number s.Step+1 for part, from p.Grads, which must hold the
	// mean gradient. It changes p.Values and s.Slots but not p.Grads or s.Step: when all
	// parts are done, the caller zeroes the gradients and increments s.Step. Clipping
	// uses the norm of a parameter's whole gradient, which must be complete even if part
	// covers only some blocks. s must come from NewState for this optimizer and p. Running
	// statistics follow their means instead, see nn.Param.Momentum; the optimizers of this
	// package do that.
	Update(b nn.Backend, p *nn.Params, s *State, part Part)
}

// Names of slots.
const (
	SlotM       = "m"       // first moment
	SlotV       = "v"       // second moment
	SlotAverage = "average" // moving average of the values
)

// State is what an optimizer keeps between steps. A checkpoint needs only Step and
// the contents of Slots.
type State struct {
	Step  int                  // updates done so far
	Slots map[string]nn.Buffer // arenas laid out like nn.Params

	hyper nn.Buffer // nn.HyperLen values, for the update in progress
	norms nn.Buffer // block norms of all parameters, or of the parameter in progress
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

// Spend is Step with gradients that are first multiplied by scale, such as 1 over the number
// of rows, and are 0 afterwards. An nn.ArenaUpdate backend does all of it at once.
func Spend(o Optimizer, b nn.Backend, p *nn.Params, s *State, scale float32) {
	if r, ok := o.(Recordable); ok {
		if h, form := r.Hyper(s.Step); form != (Form{}) {
			b.Copy(s.hyper, h[:])
			form.Spend(b, p, s, s.hyper, scale)
			s.Step++
			return
		}
	}
	b.Scale(p.Grads, scale)
	Step(o, b, p, s)
	b.Zero(p.Grads)
}

// BlockNorms sets sums to what clipping needs to know about q in the next update: the
// squared norm of each block of its gradient, as o changes it first. It is for a parameter
// whose pieces are updated apart, see [PieceOf].
func (s *State) BlockNorms(o Recordable, b nn.Backend, q *nn.Param, sums nn.Buffer) {
	h, _ := o.Hyper(s.Step)
	b.Copy(s.hyper, h[:])
	b.SquaredNorm(sums, q.Grads, q.Values, s.hyper)
}

// slot returns the elements of parameter q in a slot, or an empty Buffer if there is no such
// slot.
func (s *State) slot(name string, q *nn.Param) nn.Buffer {
	arena, ok := s.Slots[name]
	if !ok {
		return nn.Buffer{}
	}
	return arena.Slice(q.Offset, q.Offset+q.Values.Len())
}
