package bench

import (
	"context"
	"fmt"
	"time"

	"github.com/ringtrain/ringtrain/nn"
	"github.com/ringtrain/ringtrain/trainer"
)

// Emulated is a Task that waits instead of computing, as a host waits for its GPU. It
// has the rows, parameters and arenas of another task, and its gradients become final in
// the same order, so the same bytes are exchanged in the same calls; all rows of tables
// count as touched. The gradients and the loss are zero. Its weight is the number of rows.
type Emulated struct {
	trainer.Task
	ctx  context.Context
	took time.Duration
	rows int // from the last Load
	loss nn.Buffer
}

var _ trainer.Task = (*Emulated)(nil)

// Emulate returns a Task whose Learn takes a fixed time in place of t, a task on b.
// A third of that is the forward pass. In the rest, gradients become final from the
// last parameter to the first, each after a time proportional to its size. Learn
// fails when ctx ends.
func Emulate(ctx context.Context, t trainer.Task, b nn.Backend, took time.Duration) *Emulated {
	loss := b.Alloc(1)
	b.Zero(loss)
	return &Emulated{Task: t, ctx: ctx, took: took, loss: loss}
}

// Load implements trainer.Task.
func (e *Emulated) Load(step, micro int) (rows int, err error) {
	e.rows, err = e.Task.Load(step, micro)
	return e.rows, err
}

// Learn implements trainer.Task. It waits and computes nothing.
func (e *Emulated) Learn(p *nn.Pass) (loss nn.Buffer, weight int, err error) {
	begin, forward := time.Now(), e.took/3
	timer := time.NewTimer(forward)
	defer timer.Stop()
	if err := e.await(timer); err != nil {
		return nn.Buffer{}, 0, err
	}
	params := e.Params()
	for _, q := range params.List {
		if q.Touched != nil {
			q.Touched.AddAll()
		}
	}
	total := params.Values.Len()
	for i := len(params.List) - 1; i >= 0; i-- {
		at := params.List[i].Offset
		if i == 0 {
			at = 0
		}
		done := forward + time.Duration(float64(e.took-forward)*float64(total-at)/float64(max(total, 1)))
		timer.Reset(time.Until(begin.Add(done))) // from begin, so that late timers do not add up
		if err := e.await(timer); err != nil {
			return nn.Buffer{}, 0, err
		}
		if p.Final != nil {
			p.Final(at)
		}
	}
	return e.loss, e.rows, nil
}

func (e *Emulated) await(timer *time.Timer) error {
	select {
	case <-timer.C:
		return nil
	case <-e.ctx.Done():
		return fmt.Errorf("bench: emulated compute: %w", context.Cause(e.ctx))
	}
}
