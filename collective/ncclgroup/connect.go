package ncclgroup

import (
	"context"
	"fmt"

	"github.com/ringtrain/ringtrain/collective"
	"github.com/ringtrain/ringtrain/nccl"
)

// begin exchanges the ranks' versions of NCCL and connects the ranks if all have the same.
func (e *Engine) begin(ctx context.Context) error {
	var mine nccl.Version
	var why error
	if e.config.NCCL == Off {
		why = fmt.Errorf("NCCL is turned off on rank %d (%s)", e.seat.rank, e.view.Name(e.seat.rank))
	} else {
		mine, why = e.gpu.version()
	}
	versions := make([]int64, e.seat.size)
	c := collective.Call{Kind: collective.KindAllGather, DType: collective.Int64, Count: 1}
	if err := e.below.call(ctx, collective.Header{Call: c}, collective.Of(versions), collective.Of([]int64{int64(mine)})); err != nil {
		return err
	}
	if err := e.choose(versions, why); err != nil {
		return err
	}
	if e.without == nil {
		if err := e.join(ctx, 0); err != nil {
			return err
		}
	}
	// All ranks are here now. This call also makes the host engine forget ctx.
	return e.base.Agree(ctx, collective.Header{Call: collective.Call{Kind: collective.KindBarrier}})
}

// choose decides whether to use NCCL, the same on all ranks, or returns why there can be
// no engine. why is this rank's reason not to use it.
func (e *Engine) choose(versions []int64, why error) error {
	for r, v := range versions {
		switch {
		case v == 0 && r == e.seat.rank:
			e.without = why
		case v == 0 && e.without == nil:
			e.without = fmt.Errorf("rank %d (%s) does not use NCCL", r, e.view.Name(r))
		}
	}
	if e.without != nil {
		if e.config.NCCL == Must {
			return fmt.Errorf("NCCL must be used: %w", e.without)
		}
		return nil
	}
	for r, v := range versions {
		if v != versions[0] {
			return fmt.Errorf("rank %d (%s) has NCCL %v and rank 0 (%s) has %v: %w",
				r, e.view.Name(r), nccl.Version(v), e.view.Name(0), nccl.Version(versions[0]), ErrVersions)
		}
	}
	return nil
}

// join makes the communicator. All ranks call it during the same call, number seq.
func (e *Engine) join(ctx context.Context, seq uint64) error {
	var id nccl.UniqueID
	if e.seat.rank == 0 {
		err := e.gpu.aside(ctx, func() (err error) {
			id, err = e.gpu.uniqueID()
			return err
		})
		if err != nil {
			return err
		}
	}
	v := collective.Of(id[:])
	c := collective.Call{Kind: collective.KindBroadcast, DType: collective.Uint8, Count: uint64(len(id))}
	if err := e.below.call(ctx, collective.Header{Seq: seq, Call: c}, v, v); err != nil {
		return err
	}
	return e.link.join(ctx, id)
}
