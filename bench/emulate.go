package bench

import (
	"context"
	"fmt"
	"time"

	"github.com/ringtrain/ringtrain/nn"
)

// Emulated is a Model that waits instead of computing, as a host waits for its GPU. It
// has the parameters and arenas of another model, and its gradients become final in
// the same order, so the same bytes are exchanged in the same calls. The gradients
// and the loss are zero.
type Emulated struct {
	ctx   context.Context
	model nn.Model
	took  time.Duration
	loss  nn.Buffer
}

var _ nn.Model = (*Emulated)(nil)

// Emulate returns a Model whose Learn takes a fixed time in place of m, a model on b.
// A third of that is the forward pass. In the rest, gradients become final from the
// last parameter to the first, each after a time proportional to its size. Learn
// fails when ctx ends.
func Emulate(ctx context.Context, m nn.Model, b nn.Backend, took time.Duration) *Emulated {
	loss := b.Alloc(1)
	b.Zero(loss)
	return &Emulated{ctx: ctx, model: m, took: took, loss: loss}
}

// Params returns the parameters of the emulated model.
func (e *Emulated) Params() *nn.Params { return e.model.Params() }

// Learn implements nn.Model. It waits and computes nothing.
func (e *Emulated) Learn(p *nn.Pass, b nn.Batch) (loss nn.Buffer, weight int, err error) {
	begin, forward := time.Now(), e.took/3
	timer := time.NewTimer(forward)
	defer timer.Stop()
	if err := e.await(timer); err != nil {
		return nn.Buffer{}, 0, err
	}
	params := e.Params()
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
	return e.loss, b.Rows(), nil
}

func (e *Emulated) await(timer *time.Timer) error {
	select {
	case <-timer.C:
		return nil
	case <-e.ctx.Done():
		return fmt.Errorf("bench: emulated compute: %w", context.Cause(e.ctx))
	}
}

// Score calls the emulated model, which computes.
func (e *Emulated) Score(p *nn.Pass, b nn.Batch, c nn.Counts) error { return e.model.Score(p, b, c) }
