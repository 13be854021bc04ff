package ncclgroup

import (
	"context"

	"github.com/ringtrain/ringtrain/collective"
)

// below is the engine for host memory, as an Engine uses it.
type below struct {
	seat seat
	base *collective.HostEngine
}

// carryOut leaves calls to the engine below.
func (b *below) carryOut(ctx context.Context, calls []started) error {
	for i := range calls {
		s := &calls[i]
		if err := b.base.Start((*collective.Operation)(s)); err != nil {
			return err
		}
	}
	return b.base.Wait(ctx)
}

// call makes a call that no user made.
func (b *below) call(ctx context.Context, h collective.Header, dst, src collective.Vector) error {
	if err := b.base.Start(&collective.Operation{Header: h, Dst: dst, Src: src}); err != nil {
		return err
	}
	return b.base.Wait(ctx)
}

// agree finds out whether every rank concerned makes the same calls. Otherwise NCCL
// would wait forever, or move the wrong data.
func (b *below) agree(ctx context.Context, calls []started) error {
	switch s := &calls[0]; {
	case s.kind() == collective.KindSend:
		empty := make([]started, len(calls))
		for i := range calls {
			nothing, err := collective.OfBytes(nil, calls[i].Header.Call.DType)
			if err != nil {
				return err
			}
			empty[i] = started{Header: calls[i].Header, Dst: nothing, Src: nothing}
		}
		return b.carryOut(ctx, empty)
	case s.kind() == collective.KindAllToAll && s.Counts != nil:
		return b.agreeOnCounts(ctx, s)
	default:
		return b.base.Agree(ctx, s.Header)
	}
}

// agreeOnCounts tells every rank how much this one will send to it, and compares
// what the others say with what this rank expects.
func (b *below) agreeOnCounts(ctx context.Context, s *started) error {
	sends, recvs := make([]int64, b.seat.size), make([]int64, b.seat.size)
	for r := range b.seat.size {
		sends[r] = int64(s.Counts[r])
	}
	if err := b.call(ctx, s.Header, collective.Of(recvs), collective.Of(sends)); err != nil {
		return err
	}
	for r, got := range recvs {
		want := s.Counts[b.seat.size+r]
		if int64(want) == got {
			continue
		}
		differ := &collective.MismatchError{Self: b.seat.rank, Peer: r, Mine: s.Header, Theirs: s.Header}
		differ.Mine.Call.Count, differ.Theirs.Call.Count = uint64(want), uint64(got)
		b.base.Abort(&collective.RankError{Rank: r, Phase: "mismatch", Err: differ})
		return differ
	}
	return nil
}
