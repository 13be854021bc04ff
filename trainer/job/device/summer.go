package device

import (
	"context"
	"errors"

	"github.com/ringtrain/ringtrain/collective"
	"github.com/ringtrain/ringtrain/collective/ncclgroup"
	"github.com/ringtrain/ringtrain/nn"
	"github.com/ringtrain/ringtrain/trainer"
)

// A gpuSummer sums gradients with NCCL, on the backend's second stream.
type gpuSummer struct {
	*GPU // its engine is that of the newest group
	ctx  context.Context
}

// Sum implements trainer.GradientSummer.
func (s gpuSummer) Sum(grads nn.Buffer) error {
	v := trainer.Operand(grads)
	sum := collective.Call{Kind: collective.KindAllReduce, DType: collective.Float32, Op: collective.Sum, Count: uint64(v.Len())}
	s.backend.Aside("the sum of gradients", s.engine.Queued(s.ctx, sum, v, v))
	return nil
}

// Join implements trainer.GradientSummer.
func (s gpuSummer) Join() error {
	s.backend.Join()
	return nil
}

// Wait implements trainer.GradientSummer. A broken communicator also makes the device fail,
// so its error takes precedence.
func (s gpuSummer) Wait(ctx context.Context) error {
	err := s.backend.Sync(ctx)
	if broken := s.engine.Err(); broken != nil {
		return broken
	}
	if err != nil && errors.Is(context.Cause(ctx), collective.ErrLate) {
		return ncclgroup.ErrStuck
	}
	return err
}
