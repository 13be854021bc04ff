package trainer

import (
	"context"
	"errors"
	"fmt"

	"github.com/ringtrain/ringtrain/collective"
	"github.com/ringtrain/ringtrain/nn"
	"github.com/ringtrain/ringtrain/nn/optim"
)

// Start implements Strategy. With as many ranks as were saved, each resumes where it was,
// also within a round. With another number, a round ends with the mean of the values of
// the ranks that were saved, and rank r has the inner optimizer's state of saved rank r,
// counted round and round.
func (l *LocalSGD) Start(ctx context.Context, s Start) (Place, error) {
	if l.inner == nil {
		return Place{}, errNoOptimizer
	}
	if err := l.rounds.Check(); err != nil {
		return Place{}, fmt.Errorf("trainer: %w", err)
	}
	l.group, l.params, l.round = s.Group, s.Params, round{}
	l.shared, l.before = sharedParams(l.backend, s.Params), l.backend.Alloc(s.Params.Values.Len())
	l.state = optim.NewState(l.backend, s.Params, l.inner)
	from, err := l.outerState(s.From)
	if err != nil {
		return Place{}, err
	}
	place, err := l.outer.Start(ctx, Start{Group: s.Group, Params: l.shared, From: from, Settings: s.Settings})
	if err != nil {
		return Place{}, err
	}
	if l.state.Step = place.Step; place.Step > 0 {
		err = l.restore(ctx, s.From)
	}
	if !l.round.open {
		l.copy(s.Params.Values, l.shared.Values)
	}
	return place, errors.Join(err, l.backend.Sync(ctx))
}

// sharedParams returns parameters with values of their own and the gradients of p.
func sharedParams(b nn.Backend, p *nn.Params) *nn.Params {
	s := &nn.Params{Values: b.Alloc(p.Values.Len()), Grads: p.Grads}
	for _, q := range p.List {
		own := *q
		own.Values = s.Values.Slice(q.Offset, q.Offset+q.Values.Len())
		s.List = append(s.List, &own)
	}
	return s
}

// outerState sets the shared values on rank 0, and returns what outer resumes from.
func (l *LocalSGD) outerState(from State) (State, error) {
	l.copy(l.shared.Values, l.params.Values)
	if l.group.Rank() != 0 || from.Step == 0 {
		return from, nil
	}
	n := l.params.Values.Len()
	momentum, ok := from.Slots[slotOuter]
	if !ok {
		momentum = make([]float32, n) // saved by another strategy
	}
	shared, inRound := from.Slots[slotShared]
	if inRound && len(shared) != n {
		return from, wrongSlot(slotShared, len(shared), n)
	}
	if inRound {
		values, err := l.saved(from, slotValues, hostCopy(l.backend, l.params.Values))
		if err != nil {
			return from, err
		}
		if len(values) != l.group.Size() {
			shared = mean(values)
		}
		l.backend.Copy(l.shared.Values, shared)
	}
	return State{Step: from.Step, Slots: map[string][]float32{slotOuter: momentum}, Residuals: from.Residuals}, nil
}

// restore gives each rank what it had kept for itself, from rank 0.
func (l *LocalSGD) restore(ctx context.Context, from State) error {
	for _, name := range l.inner.Slots() {
		var all [][]float32
		if l.group.Rank() == 0 {
			first, ok := from.Slots[name]
			if !ok {
				return fmt.Errorf("trainer: the saved state has no slot %q", name)
			}
			saved, err := l.saved(from, name, first)
			if err != nil {
				return err
			}
			for r := range l.group.Size() {
				all = append(all, saved[r%len(saved)])
			}
		}
		if err := l.scatter(ctx, l.state.Slots[name], all); err != nil {
			return fmt.Errorf("trainer: scattering the optimizer's %q: %w", name, err)
		}
	}
	var values [][]float32
	if _, inRound := from.Slots[slotShared]; inRound && l.group.Rank() == 0 {
		values, _ = l.saved(from, slotValues, hostCopy(l.backend, l.params.Values)) // outerState has returned the error
	}
	open, err := agreeWanted(ctx, l.group, len(values) == l.group.Size())
	if err != nil {
		return fmt.Errorf("trainer: agreeing on the round to resume: %w", err)
	}
	if l.round.open = open; !open {
		return nil
	}
	if err := l.scatter(ctx, l.params.Values, values); err != nil {
		return fmt.Errorf("trainer: scattering the values of all ranks: %w", err)
	}
	return nil
}

// saved returns what each rank had kept for itself, by rank. first is that of rank 0.
func (l *LocalSGD) saved(from State, name string, first []float32) ([][]float32, error) {
	all, n := [][]float32{first}, l.params.Values.Len()
	for {
		x, ok := from.Slots[rankSlot(name, len(all))]
		if !ok {
			break
		}
		all = append(all, x)
	}
	for r, x := range all {
		if len(x) != n {
			return nil, wrongSlot(rankSlot(name, r), len(x), n)
		}
	}
	return all, nil
}

func wrongSlot(name string, saved, here int) error {
	return fmt.Errorf("trainer: the saved slot %q has %d elements, this model's has %d", name, saved, here)
}

// scatter sets an arena to this rank's of those on rank 0.
func (l *LocalSGD) scatter(ctx context.Context, to nn.Buffer, all [][]float32) error {
	mine := make([]float32, to.Len())
	if err := scatterArenas(ctx, l.group, mine, all); err != nil {
		return err
	}
	l.backend.Copy(to, mine)
	return nil
}

// mean returns the mean of vectors.
func mean(vectors [][]float32) []float32 {
	operands, sum := make([]collective.Vector, len(vectors)), make([]float32, len(vectors[0]))
	for i, x := range vectors {
		operands[i] = collective.Of(x)
	}
	_ = collective.FoldLocal(collective.Sum, collective.Of(sum), operands) // fails only if types or lengths differ
	for i := range sum {
		sum[i] /= float32(len(vectors))
	}
	return sum
}
