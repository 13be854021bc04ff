package collective

import (
	"context"
	"fmt"
)

// ReduceScatter reduces src over all ranks and leaves this rank's piece of the
// result in dst: elements [Rank()*n, (Rank()+1)*n) with n = dst.Len(). src has
// Size()*n elements. dst may be this rank's piece of src. The bits are those of
// AllReduce.
func (g *Group) ReduceScatter(ctx context.Context, dst, src Vector, op Op) error {
	var c Call
	if err := g.reduceScatter(&c, &dst, &src, nil, op); err != nil {
		return err
	}
	return g.call(ctx, &c, &dst, &src, nil)
}

// ReduceScatterV is ReduceScatter with pieces of different lengths, one after
// another: rank r gets counts[r] elements. counts must be the same on all
// ranks.
func (g *Group) ReduceScatterV(ctx context.Context, dst, src Vector, counts []int, op Op) error {
	if err := g.counted(KindReduceScatter, counts); err != nil {
		return err
	}
	if dst.n != counts[g.Rank()] {
		return fmt.Errorf("collective: ReduceScatterV into %v: counts[%d] is %d: dst of this rank must have that many elements", dst, g.Rank(), counts[g.Rank()])
	}
	var c Call
	if err := g.reduceScatter(&c, &dst, &src, counts, op); err != nil {
		return err
	}
	return g.call(ctx, &c, &dst, &src, counts)
}

// AllGatherV is AllGather with pieces of different lengths: rank r contributes
// counts[r] elements. counts must be the same on all ranks.
func (g *Group) AllGatherV(ctx context.Context, dst, src Vector, counts []int) error {
	if err := g.counted(KindAllGather, counts); err != nil {
		return err
	}
	if src.n != counts[g.Rank()] {
		return fmt.Errorf("collective: AllGatherV of %v: counts[%d] is %d: src of this rank must have that many elements", src, g.Rank(), counts[g.Rank()])
	}
	if err := g.fits(KindAllGather, &dst, &src, dst.n, total(counts)); err != nil {
		return err
	}
	if !pieceOf(&dst, &src, total(counts[:g.Rank()])) {
		return overlapping(KindAllGather, &dst, &src)
	}
	return g.call(ctx, &Call{Kind: KindAllGather, DType: src.dtype, Count: uint64(dst.n), Root: digestCounts(counts)}, &dst, &src, counts)
}

// Reduce reduces src over all ranks and leaves the result in dst on the root.
// The bits are those of AllReduce. dst may be src. Other ranks do not use dst, and may
// return before the root has called.
func (g *Group) Reduce(ctx context.Context, dst, src Vector, op Op, root int) error {
	if err := reducible(&src, op); err != nil {
		return err
	}
	if err := g.rooted(KindReduce, root); err != nil {
		return err
	}
	if g.Rank() != root {
		dst = src
	} else if err := g.fits(KindReduce, &dst, &src, dst.n, src.n); err != nil {
		return err
	} else if !pieceOf(&dst, &src, 0) {
		return overlapping(KindReduce, &dst, &src)
	}
	return g.call(ctx, &Call{Kind: KindReduce, DType: src.dtype, Op: op, Root: uint32(root), Offset: uint32(src.arena), Count: uint64(src.n)}, &dst, &src, nil)
}

// Gather puts the src of every rank, in rank order, into dst on the root.
// There, dst has Size() times as many elements as src, which may be the root's
// piece of dst. Other ranks do not use dst, and may return before the root has called.
func (g *Group) Gather(ctx context.Context, dst, src Vector, root int) error {
	if err := g.rooted(KindGather, root); err != nil {
		return err
	}
	if g.Rank() != root {
		dst = src
	} else if err := g.fits(KindGather, &dst, &src, dst.n, src.n*g.Size()); err != nil {
		return err
	} else if !pieceOf(&dst, &src, root*src.n) {
		return overlapping(KindGather, &dst, &src)
	}
	return g.call(ctx, &Call{Kind: KindGather, DType: src.dtype, Root: uint32(root), Count: uint64(src.n)}, &dst, &src, nil)
}

// Scatter puts piece r of the root's src into dst on rank r. On the root, src
// has Size() times as many elements as dst, which may be the root's piece of
// src. Other ranks do not use src. The root may return before they have called.
func (g *Group) Scatter(ctx context.Context, dst, src Vector, root int) error {
	if err := g.rooted(KindScatter, root); err != nil {
		return err
	}
	if g.Rank() != root {
		src = dst
	} else if err := g.fits(KindScatter, &dst, &src, src.n, dst.n*g.Size()); err != nil {
		return err
	} else if !pieceOf(&src, &dst, root*dst.n) {
		return overlapping(KindScatter, &dst, &src)
	}
	return g.call(ctx, &Call{Kind: KindScatter, DType: dst.dtype, Root: uint32(root), Count: uint64(dst.n)}, &dst, &src, nil)
}

// AllToAll sends piece r of src to rank r and stores what rank r sends as
// piece r of dst. Both have the same length, a multiple of Size(), and do not
// overlap.
func (g *Group) AllToAll(ctx context.Context, dst, src Vector) error {
	if src.n%g.Size() != 0 {
		return fmt.Errorf("collective: AllToAll of %v: the length must be a multiple of the %d ranks", src, g.Size())
	}
	if err := g.fits(KindAllToAll, &dst, &src, dst.n, src.n); err != nil {
		return err
	}
	if dst.overlaps(&src) {
		return overlapping(KindAllToAll, &dst, &src)
	}
	return g.call(ctx, &Call{Kind: KindAllToAll, DType: src.dtype, Count: uint64(src.n)}, &dst, &src, nil)
}

// AllToAllV is AllToAll with pieces of different lengths, one after another:
// sends[r] elements go to rank r, and recvs[r] come from it. What rank a sends
// to rank b must equal what b receives from a; otherwise b gets an error, and a gets it here
// or, if it has already finished, in its next call.
func (g *Group) AllToAllV(ctx context.Context, dst, src Vector, sends, recvs []int) error {
	for _, counts := range [][]int{sends, recvs} {
		if err := g.counted(KindAllToAll, counts); err != nil {
			return err
		}
	}
	if err := g.fits(KindAllToAll, &dst, &src, dst.n, total(recvs)); err != nil {
		return err
	}
	if src.n != total(sends) {
		return fmt.Errorf("collective: AllToAllV of %v: sends add up to %d elements: they must cover all of src", src, total(sends))
	}
	if own := g.Rank(); sends[own] != recvs[own] {
		return fmt.Errorf("collective: AllToAllV: rank %d sends itself %d elements and receives %d: sends[%d] and recvs[%d] must be equal", own, sends[own], recvs[own], own, own)
	}
	if dst.overlaps(&src) {
		return overlapping(KindAllToAll, &dst, &src)
	}
	counts := append(append(make([]int, 0, 2*g.Size()), sends...), recvs...)
	return g.call(ctx, &Call{Kind: KindAllToAll, DType: src.dtype, Root: pairCounts}, &dst, &src, counts)
}

// Send sends v to a rank, which calls Recv with as many elements. It returns
// when v may be used again, which may be as late as the receiver's call. Only
// these two ranks make the call. Each pair of ranks counts its calls
// separately.
func (g *Group) Send(ctx context.Context, v Vector, to int) error {
	return g.callSendRecv(ctx, []half{{v, g.Rank(), to}})
}

// Recv fills v with the elements that a rank sends by Send.
func (g *Group) Recv(ctx context.Context, v Vector, from int) error {
	return g.callSendRecv(ctx, []half{{v, from, g.Rank()}})
}

// SendRecv sends src to one rank and, at the same time, fills dst from another
// or the same rank. All ranks of a ring can call it together. Send followed by
// Recv would deadlock there. dst and src do not overlap. A rank sends to itself only
// as the ring of a group of one.
func (g *Group) SendRecv(ctx context.Context, dst Vector, from int, src Vector, to int) error {
	if dst.overlaps(&src) {
		return overlapping("SendRecv", &dst, &src)
	}
	if g.Size() == 1 && from == 0 && to == 0 { // a ring of one
		return g.AllToAll(ctx, dst, src)
	}
	return g.callSendRecv(ctx, []half{{src, g.Rank(), to}, {dst, from, g.Rank()}})
}
