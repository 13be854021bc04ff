package optim

import "github.com/ringtrain/ringtrain/nn"

// statistics updates the running statistics of part, once per update of an optimizer: not
// again with the second Form of an update that has two.
func (s *State) statistics(f Form, b nn.Backend, part Part) {
	if f.alongMoment {
		return
	}
	for _, q := range statistics(part.params) {
		s.follow(b, q)
	}
}

// statistics returns the running statistics among params.
func statistics(params []*nn.Param) (found []*nn.Param) {
	for _, q := range params {
		if q.Momentum > 0 {
			found = append(found, q)
		}
	}
	return found
}

// follow updates a running statistic whose mean is in q.Grads. A moving average of it is the
// statistic itself.
func (s *State) follow(b nn.Backend, q *nn.Param) {
	value, mean, average := q.Values, q.Grads, s.slot(SlotAverage, q)
	if a, ok := b.(nn.ArenaUpdate); ok {
		a.Follow(value, average, mean, q.Momentum)
		return
	}
	b.Scale(value, 1-q.Momentum)
	b.Axpy(value, q.Momentum, mean)
	if average.Len() > 0 {
		b.Extract(average, value, value.Len(), 0, value.Len())
	}
}
