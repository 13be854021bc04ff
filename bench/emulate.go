package bench

import (
	"context"
	"fmt"
	"time"

	"github.com/ringtrain/ringtrain/nn"
)

// Emulated is a Model that waits where another computes, as a host waits for
// its GPU: the parameters, their arenas and the order in which gradients become
// final are the other's, so everything that is exchanged is as large, in as many
// calls. The gradients are zero, and so is the loss.
type Emulated struct {
	ctx   context.Context
	model nn.Model
	took  time.Duration
	loss  nn.Buffer
}

var _ nn.Model = (*Emulated)(nil)

// Emulate has m, a model on b, learn for a fixed time. A third of it is the
// forward pass; in the rest gradients become final from the last parameter to
// the first, each after a time in proportion to its size. The end of ctx ends
// the waiting.
func Emulate(ctx context.Context, m nn.Model, b nn.Backend, took time.Duration) *Emulated {
	loss := b.Alloc(1)
	b.Zero(loss)
	return &Emulated{ctx: ctx, model: m, took: took, loss: loss}
}

// Params returns the model's.
func (e *Emulated) Params() *nn.Params { return e.model.Params() }

// Learn implements nn.Model, and does nothing.
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
		timer.Reset(time.Until(begin.Add(done))) // by the clock, so that what the timer is late by does not add up
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

// Score is the model's, and computes.
func (e *Emulated) Score(p *nn.Pass, b nn.Batch, c nn.Counts) error { return e.model.Score(p, b, c) }
