package ncclgroup

import (
	"context"

	"github.com/ringtrain/ringtrain/collective"
)

// below makes an Engine's calls of the host engine.
type below struct {
	seat seat
	base *collective.HostEngine
}

// carryOut passes calls to the host engine.
func (b *below) carryOut(ctx context.Context, calls []started) error {
	for i := range calls {
		s := &calls[i]
		if err := b.base.Start((*collective.Operation)(s)); err != nil {
			return err
		}
	}
	return b.base.Wait(ctx)
}

// call makes a call of our own, which no user made.
func (b *below) call(ctx context.Context, h collective.Header, dst, src collective.Vector) error {
	if err := b.base.Start(&collective.Operation{Header: h, Dst: dst, Src: src}); err != nil {
		return err
	}
	return b.base.Wait(ctx)
}

// agree checks that every rank involved makes the same calls. Otherwise NCCL would wait
// forever, or move the wrong data.
func (b *below) agree(ctx context.Context, calls []started) error {
	if s := &calls[0]; s.kind() == collective.KindAllToAll && s.Counts != nil {
		return b.agreeOnCounts(ctx, s)
	}
	return b.meet(ctx, calls)
}

// meet waits until every rank involved is here. A rank that comes with another call is an
// error.
func (b *below) meet(ctx context.Context, calls []started) error {
	if s := &calls[0]; s.kind() != collective.KindSend {
		return b.base.Agree(ctx, s.Header)
	}
	empty := make([]started, len(calls))
	for i := range calls {
		nothing, err := collective.OfBytes(nil, calls[i].Header.Call.DType)
		if err != nil {
			return err
		}
		empty[i] = started{Header: calls[i].Header, Dst: nothing, Src: nothing}
	}
	return b.carryOut(ctx, empty)
}

// agreeOnCounts sends every rank the number of elements that it will get from this one,
// and compares what the others send with what this rank expects.
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
