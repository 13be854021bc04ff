package trainer

import (
	"context"
	"errors"
	"fmt"
	"time"
	"unsafe"

	"github.com/ringtrain/ringtrain/collective"
	"github.com/ringtrain/ringtrain/nn"
	"github.com/ringtrain/ringtrain/nn/optim"
)

// hashEvery is the number of steps after which ranks compare a hash of their
// values.
const hashEvery = 50

// AllReduce is the strategy in which every rank holds all parameters and its
// own optimizer: gradients are summed over the ranks and divided by all rows,
// and since every rank gets the same bits, every rank makes the same update.
type AllReduce struct {
	group     *collective.Group
	backend   nn.Backend
	optimizer optim.Optimizer

	state *optim.State
	mine  []int64 // this rank's word
	words []int64 // all ranks'
	pace  pace    // of steps so far
}

// NewAllReduce makes the strategy. The group, backend and optimizer stay the
// caller's.
func NewAllReduce(g *collective.Group, b nn.Backend, o optim.Optimizer) *AllReduce {
	return &AllReduce{group: g, backend: b, optimizer: o, mine: make([]int64, wordLen), words: make([]int64, wordLen*g.Size())}
}

// Init implements Strategy.
func (a *AllReduce) Init(ctx context.Context, p *nn.Params, from State) error {
	values := p.Values.Float32s()
	if values == nil {
		return errors.New("trainer: the parameters are in device memory, this group works on host memory")
	}
	a.state = optim.NewState(a.backend, p, a.optimizer)
	a.state.Step = from.Step
	for name, slot := range a.state.Slots {
		if saved, ok := from.Slots[name]; ok {
			if len(saved) != slot.Len() {
				return fmt.Errorf("trainer: the saved slot %q has %d elements, this model's has %d", name, len(saved), slot.Len())
			}
			a.backend.Copy(slot, saved)
		} else if from.Step > 0 {
			return fmt.Errorf("trainer: the saved state has no slot %q", name)
		}
	}
	if err := collective.Broadcast(ctx, a.group, values, 0); err != nil {
		return fmt.Errorf("trainer: broadcasting the initial weights: %w", err)
	}
	_, err := a.exchange(ctx, word{step: int64(from.Step), hash: hash(values)})
	return err
}

// Step implements Strategy.
func (a *AllReduce) Step(ctx context.Context, p *nn.Params, s Step) (Report, error) {
	begin := time.Now()
	ctx, cancel := context.WithTimeoutCause(ctx, a.pace.patience(begin), collective.ErrLate)
	defer cancel()
	a.group.Mark(uint64(s.Index))
	if err := a.backend.Sync(ctx); err != nil {
		return Report{}, err
	}
	report, err := a.exchange(ctx, a.word(p, s))
	if err != nil {
		return report, err
	}
	if report.Weight == 0 {
		return report, nil
	}
	grads := collective.Of(p.Grads.Float32s())
	if err := a.group.AllReduce(ctx, grads, collective.Sum); err != nil {
		return report, fmt.Errorf("trainer: summing the gradients of step %d: %w", s.Index, err)
	}
	report.Bytes, report.Exchange = grads.Bytes(), time.Since(begin)
	if !s.Undivided {
		a.backend.Scale(p.Grads, 1/float32(report.Weight))
	}
	optim.Step(a.optimizer, a.backend, p, a.state)
	report.Update = time.Since(begin) - report.Exchange
	return report, nil
}

// word is what this rank has to say at a step.
func (a *AllReduce) word(p *nn.Params, s Step) word {
	w := word{step: int64(s.Index), weight: int64(s.Weight)}
	if s.Stop {
		w.stop = 1
	}
	if s.Loss.Len() > 0 {
		w.loss = float64(s.Loss.Float32s()[0])
	}
	if s.Index%hashEvery == 0 {
		w.hash = hash(p.Values.Float32s())
	}
	return w
}

// exchange tells all ranks a word and hears theirs.
func (a *AllReduce) exchange(ctx context.Context, w word) (Report, error) {
	w.put(a.mine)
	if err := collective.AllGather(ctx, a.group, a.words, a.mine); err != nil {
		return Report{}, fmt.Errorf("trainer: comparing notes at step %d: %w", w.step, err)
	}
	words := make([]word, a.group.Size())
	for r := range words {
		words[r] = getWord(a.words[r*wordLen:])
	}
	return agree(words, a.group.View())
}

// State implements Strategy.
func (a *AllReduce) State(ctx context.Context) (State, error) {
	s := State{Step: a.state.Step, Slots: map[string][]float32{}}
	for name, slot := range a.state.Slots {
		s.Slots[name] = make([]float32, slot.Len())
		a.backend.Read(s.Slots[name], slot)
	}
	return s, a.backend.Sync(ctx)
}

// Close implements Strategy.
func (a *AllReduce) Close() error { return nil }

// hash is a digest of the values' memory; never 0.
func hash(values []float32) int64 {
	return digest(unsafe.Slice((*byte)(unsafe.Pointer(unsafe.SliceData(values))), 4*len(values)))
}
