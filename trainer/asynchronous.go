package trainer

// An Asynchronous is a Strategy whose ranks do not step together. Only rank 0 evaluates and
// saves, while the others continue, so the tasks of the others have no test rows. Rank 0 does
// so once it has passed a step at which an evaluation or a snapshot is due. The Report of a
// rank also covers gradients of other ranks that it has not reported yet.
//
// Ranks may share the steps of a run: a step of any rank is then one of all, and the steps
// of a rank have gaps.
type Asynchronous interface {
	Strategy
	// Done returns the number of steps done by this rank, or by all ranks together if they
	// share the steps, as far as this rank knows. A Step that succeeds increases it, unless
	// training is over.
	Done() int
}

// done returns the number of steps done after this rank has taken step first.
func (l *loop) done(first int) int {
	if s, ok := l.Strategy.(Asynchronous); ok {
		return s.Done()
	}
	return first + 1
}
