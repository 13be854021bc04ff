package trainer

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/ringtrain/ringtrain/collective"
	"github.com/ringtrain/ringtrain/nn"
	"github.com/ringtrain/ringtrain/nn/optim"
)

var _ Recordable = (*AllReduce)(nil)

// CanRecord implements Recordable.
func (a *AllReduce) CanRecord() error {
	if _, ok := a.optimizer.(optim.Recordable); !ok {
		return fmt.Errorf("the optimizer %T is not an optim.Recordable", a.optimizer)
	}
	if a.compression.Form != Exact {
		return errors.New("gradients are compressed, which is done on the host")
	}
	return nil
}

// Hyper implements Recordable.
func (a *AllReduce) Hyper(step int) ([nn.HyperLen]float32, optim.Form) {
	return a.optimizer.(optim.Recordable).Hyper(step)
}

// Queue implements Recordable.
func (a *AllReduce) Queue(p *nn.Params, step int, f optim.Form, hyper nn.Buffer, scale float32) {
	if f != (optim.Form{}) {
		f.Spend(a.backend, p, a.state, hyper, scale)
		return
	}
	a.backend.Scale(p.Grads, scale)
	a.state.Step = step
	a.optimizer.Update(a.backend, p, a.state, optim.Whole(p))
	a.backend.Zero(p.Grads)
}

// Confirm implements Recordable with one all-gather of the words of all steps. They
// carry no hash: the values are those of a later step by now.
func (a *AllReduce) Confirm(ctx context.Context, p *nn.Params, steps []Step) ([]Report, error) {
	begin := time.Now()
	ctx, cancel := context.WithTimeoutCause(ctx, a.agreement.timeout.begin(begin, len(steps), steps[0].Late), collective.ErrLate)
	defer cancel()
	n, size := len(steps), a.group.Size()
	a.group.Mark(uint64(steps[0].Index))
	mine, all := make([]int64, n*wordLen), make([]int64, size*n*wordLen)
	for k, s := range steps {
		w := word{step: int64(s.Index), weight: int64(s.Weight), loss: s.Loss}
		if s.Stop {
			w.stop = 1
		}
		w.put(mine[k*wordLen:])
	}
	if err := collective.AllGather(ctx, a.group, all, mine); err != nil {
		return nil, fmt.Errorf("trainer: exchanging step status at step %d: %w", steps[0].Index+1, err)
	}
	lens := a.gradients.lens(1)
	if steps[0].Buckets > 1 {
		lens = a.Buckets(p)
	}
	reports, words := make([]Report, n), make([]word, size)
	for k := range steps {
		for r := range words {
			words[r] = getWord(all[(r*n+k)*wordLen:])
		}
		report, err := outcome(words, a.group.View(), p)
		if err != nil {
			return nil, err
		}
		report.Bytes, report.Buckets = 4*p.Grads.Len(), max(steps[k].Buckets, 1)
		report.Sent, report.Plain = a.gradients.bytes(lens)
		report.Exchange = time.Since(begin) / time.Duration(n)
		reports[k] = report
	}
	a.state.Step = steps[n-1].Index + 1
	return reports, nil
}
