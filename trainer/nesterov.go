package trainer

import (
	"github.com/ringtrain/ringtrain/nn"
	"github.com/ringtrain/ringtrain/nn/optim"
)

// slotOuter is the arena of the outer momentum.
const slotOuter = "outer"

// nesterov is the optimizer of outer steps: SGD with Nesterov's momentum, as in PyTorch.
// With gradient g,
//
//	outer = Momentum·outer + g
//	w = w - Rate·(g + Momentum·outer)
//
// Running statistics become the mean over the ranks: overshooting could make a variance
// negative.
type nesterov struct{ Rounds }

var _ optim.Optimizer = nesterov{}

// Slots implements optim.Optimizer.
func (n nesterov) Slots() []string {
	if n.Momentum == 0 {
		return nil
	}
	return []string{slotOuter}
}

// Update implements optim.Optimizer. It updates all parameters: outer steps have no parts.
func (n nesterov) Update(b nn.Backend, p *nn.Params, s *optim.State, _ optim.Part) {
	for _, q := range p.List {
		if q.Momentum > 0 {
			b.Axpy(q.Values, -1, q.Grads)
			continue
		}
		b.Axpy(q.Values, float32(-n.Rate), q.Grads)
		if outer, ok := s.Slots[slotOuter]; ok {
			m := outer.Slice(q.Offset, q.Offset+q.Values.Len())
			b.Scale(m, float32(n.Momentum))
			b.Axpy(m, 1, q.Grads)
			b.Axpy(q.Values, float32(-n.Rate*n.Momentum), m)
		}
	}
}
