package trainer

import (
	"context"
	"errors"
	"fmt"

	"github.com/ringtrain/ringtrain/nn"
	"github.com/ringtrain/ringtrain/nn/optim"
)

var errNoOptimizer = errors.New("trainer: nothing to update parameters with: the optimizer of the strategy is nil")

// Start implements Strategy: it compares the settings of all ranks, and rank 0
// broadcasts where to begin, the values and the optimizer's state.
func (a *AllReduce) Start(ctx context.Context, s Start) (Place, error) {
	if a.optimizer == nil {
		return Place{}, errNoOptimizer
	}
	if err := a.compression.Check(); err != nil {
		return Place{}, err
	}
	if a.sparse > SparseOn {
		return Place{}, fmt.Errorf("trainer: the form of sparse gradients must be one of the constants, not %v", a.sparse)
	}
	if a.bucket < 0 {
		return Place{}, fmt.Errorf("trainer: the minimum size of a bucket must be at least 0, not %d bytes", a.bucket)
	}
	a.group, a.agreement = s.Group, NewAgreement(s.Group, a.backend)
	a.agreement.hashAll = a.hashAll
	from, err := a.agreement.Start(ctx, s, a.settings(s.Params)...)
	if err != nil {
		return Place{}, err
	}
	if err := a.prepare(s.Params); err != nil {
		return Place{}, err
	}
	if err := a.broadcast(ctx, s.Params, from); err != nil {
		return Place{}, err
	}
	all := a.digest(s.Params)
	if err := a.backend.Sync(ctx); err != nil {
		return Place{}, err
	}
	if _, err := a.agreement.agree(ctx, s.Params, word{step: int64(from.Step), hash: all}); err != nil {
		return Place{}, err
	}
	return Place{View: a.group.View(), Step: from.Step}, nil
}

// settings are those of AllReduce that must be the same on all ranks. Without a
// check ranks that cut their gradients in other places would add up what does not
// belong together, or wait forever.
func (a *AllReduce) settings(p *nn.Params) []Setting {
	return []Setting{
		{Name: "the strategy", Value: a.name}, {Name: "the minimum size of a bucket", Value: fmt.Sprint(a.bucket)}, {Name: "the form of sparse gradients", Value: a.sparse.String()},
		{Name: "the compression", Value: a.compression.String(), Derived: true}, optimizerSetting(a.compared),
		{Name: "the number of weights", Value: fmt.Sprint(p.Values.Len()), Derived: true},
	}
}

// optimizerSetting returns the Setting of an optimizer: its type and, if it is an
// optim.Recordable, its hyper-parameters in the first two steps. Ranks whose schedules differ
// later notice it when they compare values.
func optimizerSetting(o optim.Optimizer) Setting {
	value := fmt.Sprintf("%T", o)
	if r, ok := o.(optim.Recordable); ok {
		first, _ := r.Hyper(0)
		second, _ := r.Hyper(1)
		value += fmt.Sprint(" ", first, ", then ", second)
	}
	return Setting{Name: "the optimizer", Value: value, Derived: true}
}

// prepare makes what steps need.
func (a *AllReduce) prepare(p *nn.Params) error {
	x := gradientExchange{group: a.group, backend: a.backend, params: p, cuts: []int{0}, summer: a.summer}
	device := onDevice(p.Values)
	if device && a.compression.Form != Exact {
		return fmt.Errorf("trainer: compression %v: the gradients are in device memory, and only those in host memory are packed", a.compression)
	}
	if a.compression.Form != Exact {
		if err := checkStatistics(p, fmt.Sprintf("compression %v would change it; send gradients uncompressed", a.compression)); err != nil {
			return err
		}
	}
	if a.group.Size() > 1 && (a.summer != nil || !device) {
		x.cuts = cuts(p, a.leastBucket(p))
	}
	a.state = optim.NewState(a.backend, p, a.optimizer)
	if device {
		x.device = newDeviceFinite(a.backend, p.Grads, len(x.cuts))
	}
	if a.compression.Form != Exact {
		x.compressor = newCompressor(a.compression, a.group, a.backend, p, x.cuts)
	}
	if a.byRows(p) {
		x.rows = newRowExchange(a.group, p, a.sparse)
		x.cuts, x.tables = cutsAround(p, a.leastBucket(p), a.sparse.applies)
		x.waits = make([]bool, len(x.cuts))
		a.agreement.carry(len(x.rows.tables))
	}
	a.gradients = x
	return nil
}

// byRows reports whether the gradients of some parameters may leave as rows.
func (a *AllReduce) byRows(p *nn.Params) bool {
	return a.group.Size() > 1 && a.compression.Form == Exact && !onDevice(p.Grads) && a.sparse.Tables(p) > 0
}

// broadcast gives all ranks the values of rank 0 and the state that it resumes
// from.
func (a *AllReduce) broadcast(ctx context.Context, p *nn.Params, from State) error {
	if err := a.agreement.Values(ctx, p); err != nil {
		return err
	}
	a.state.Step = from.Step
	if from.Step == 0 {
		return nil
	}
	for _, name := range a.optimizer.Slots() {
		slot := a.state.Slots[name]
		if a.group.Rank() == 0 {
			saved, ok := from.Slots[name]
			if !ok {
				return fmt.Errorf("trainer: the saved state has no slot %q", name)
			}
			if len(saved) != slot.Len() {
				return fmt.Errorf("trainer: the saved slot %q has %d elements, this model's has %d", name, len(saved), slot.Len())
			}
			a.backend.Copy(slot, saved)
		}
		if err := a.group.Broadcast(ctx, Operand(slot), 0); err != nil {
			return fmt.Errorf("trainer: broadcasting the optimizer's %q: %w", name, err)
		}
	}
	if z := a.gradients.compressor; z != nil {
		return z.restore(ctx, from.Residuals)
	}
	return nil
}

// digest is of everything that must be the same on all ranks before the first
// step.
func (a *AllReduce) digest(p *nn.Params) int64 {
	sums := []int64{hash(hostCopy(a.backend, p.Values))}
	for _, name := range a.optimizer.Slots() {
		sums = append(sums, hash(hostCopy(a.backend, a.state.Slots[name])))
	}
	return digest(fmt.Append(nil, sums))
}

// Total implements Strategy: the sum over all ranks, with the same bits on each.
// Ranks that counted different things get a *DivergedError.
func (a *AllReduce) Total(ctx context.Context, own nn.Counts) (nn.Counts, error) {
	return a.agreement.Total(ctx, own)
}

// Finish implements Strategy: all ranks must hold the same values.
func (a *AllReduce) Finish(ctx context.Context, p *nn.Params) error {
	return a.agreement.Finish(ctx, p)
}

// State implements Strategy. What compression has kept back is each rank's own,
// so all ranks send it to where it is wanted.
func (a *AllReduce) State(ctx context.Context, wanted bool) (State, error) {
	s := State{Step: a.state.Step, Slots: map[string][]float32{}}
	if z := a.gradients.compressor; z != nil {
		var err error
		if s.Residuals, err = z.collect(ctx, wanted); err != nil {
			return s, err
		}
	}
	if !wanted {
		return s, nil
	}
	for name, slot := range a.state.Slots {
		s.Slots[name] = make([]float32, slot.Len())
		a.backend.Read(s.Slots[name], slot)
	}
	return s, a.backend.Sync(ctx)
}
