package collective

import (
	"context"
	"fmt"
)

// ReduceScatter reduces src over all ranks and leaves in dst this rank's piece
// of the result: elements [Rank()*n, (Rank()+1)*n) with n = dst.Len(). src has
// Size()*n elements, of which dst may be the piece itself. The bits are those
// that AllReduce of src gives.
func (g *Group) ReduceScatter(ctx context.Context, dst, src Vector, op Op) error {
	var c Call
	if err := g.reduceScatter(&c, &dst, &src, nil, op); err != nil {
		return err
	}
	return g.call(ctx, &c, &dst, &src, nil)
}

// ReduceScatterV is ReduceScatter with pieces of different lengths: rank r gets
// counts[r] elements, one piece after another. All ranks give the same counts.
func (g *Group) ReduceScatterV(ctx context.Context, dst, src Vector, counts []int, op Op) error {
	if err := g.counted(KindReduceScatter, counts); err != nil {
		return err
	}
	if dst.n != counts[g.Rank()] {
		return fmt.Errorf("collective: ReduceScatterV into %v: counts give rank %d %d elements", dst, g.Rank(), counts[g.Rank()])
	}
	var c Call
	if err := g.reduceScatter(&c, &dst, &src, counts, op); err != nil {
		return err
	}
	return g.call(ctx, &c, &dst, &src, counts)
}

// AllGatherV is AllGather with pieces of different lengths: rank r gives
// counts[r] elements. All ranks give the same counts.
func (g *Group) AllGatherV(ctx context.Context, dst, src Vector, counts []int) error {
	if err := g.counted(KindAllGather, counts); err != nil {
		return err
	}
	if src.n != counts[g.Rank()] {
		return fmt.Errorf("collective: AllGatherV of %v: counts take %d elements of rank %d", src, counts[g.Rank()], g.Rank())
	}
	if err := g.fits(KindAllGather, &dst, &src, dst.n, total(counts)); err != nil {
		return err
	}
	return g.call(ctx, &Call{Kind: KindAllGather, DType: src.dtype, Count: uint64(dst.n), Root: digestCounts(counts)}, &dst, &src, counts)
}

// Reduce reduces src over all ranks and leaves the result in dst on the root,
// with the bits that AllReduce gives. dst may be src; on other ranks it is not
// used.
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
	}
	return g.call(ctx, &Call{Kind: KindReduce, DType: src.dtype, Op: op, Root: uint32(root), Offset: uint32(src.arena), Count: uint64(src.n)}, &dst, &src, nil)
}

// Gather puts the src of every rank, in rank order, into dst on the root. dst
// has Size() times as many elements as src; on other ranks it is not used.
func (g *Group) Gather(ctx context.Context, dst, src Vector, root int) error {
	if err := g.rooted(KindGather, root); err != nil {
		return err
	}
	if g.Rank() != root {
		dst = src
	} else if err := g.fits(KindGather, &dst, &src, dst.n, src.n*g.Size()); err != nil {
		return err
	}
	return g.call(ctx, &Call{Kind: KindGather, DType: src.dtype, Root: uint32(root), Count: uint64(src.n)}, &dst, &src, nil)
}

// Scatter puts piece r of the root's src into dst on rank r. src has Size()
// times as many elements as dst; on other ranks than the root it is not used.
func (g *Group) Scatter(ctx context.Context, dst, src Vector, root int) error {
	if err := g.rooted(KindScatter, root); err != nil {
		return err
	}
	if g.Rank() != root {
		src = dst
	} else if err := g.fits(KindScatter, &dst, &src, src.n, dst.n*g.Size()); err != nil {
		return err
	}
	return g.call(ctx, &Call{Kind: KindScatter, DType: dst.dtype, Root: uint32(root), Count: uint64(dst.n)}, &dst, &src, nil)
}

// AllToAll sends piece r of src to rank r, and puts what rank r sends here at
// place r of dst. Both have the same length, a multiple of Size(), and do not
// overlap.
func (g *Group) AllToAll(ctx context.Context, dst, src Vector) error {
	if src.n%g.Size() != 0 {
		return fmt.Errorf("collective: AllToAll of %v: it does not divide among %d ranks", src, g.Size())
	}
	if err := g.fits(KindAllToAll, &dst, &src, dst.n, src.n); err != nil {
		return err
	}
	return g.call(ctx, &Call{Kind: KindAllToAll, DType: src.dtype, Count: uint64(src.n)}, &dst, &src, nil)
}

// AllToAllV is AllToAll with pieces of different lengths: sends[r] elements go
// to rank r and recvs[r] come from it, one piece after another. What a rank
// sends another is what that one receives; ranks that differ find out.
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
		return fmt.Errorf("collective: AllToAllV of %v: the counts take %d elements", src, total(sends))
	}
	counts := append(append(make([]int, 0, 2*g.Size()), sends...), recvs...)
	return g.call(ctx, &Call{Kind: KindAllToAll, DType: src.dtype}, &dst, &src, counts)
}

// Send sends v to a rank, which calls Recv with as many elements. It returns
// when v may be used again, which may be only when the other receives. Only
// the two ranks call, and pairs of ranks count their calls apart.
func (g *Group) Send(ctx context.Context, v Vector, to int) error {
	return g.exchange(ctx, []half{{v, g.Rank(), to}})
}

// Recv fills v with what a rank sends by Send.
func (g *Group) Recv(ctx context.Context, v Vector, from int) error {
	return g.exchange(ctx, []half{{v, from, g.Rank()}})
}

// SendRecv sends src to one rank and fills dst from another, or the same, at
// once: all ranks of a ring can call it together, which with Send and then Recv
// would wait in a circle.
func (g *Group) SendRecv(ctx context.Context, dst Vector, from int, src Vector, to int) error {
	if g.Size() == 1 && from == 0 && to == 0 { // a ring of one
		return g.AllToAll(ctx, dst, src)
	}
	return g.exchange(ctx, []half{{src, g.Rank(), to}, {dst, from, g.Rank()}})
}

// half is one side of a message between two ranks.
type half struct {
	v        Vector
	from, to int
}

// call is the Call that both sides make.
func (h half) call() Call {
	return Call{Kind: KindSend, DType: h.v.dtype, Root: uint32(h.from), Offset: uint32(h.to), Count: uint64(h.v.n)}
}

// peer is the other rank.
func (h half) peer(self int) int {
	if h.from == self {
		return h.to
	}
	return h.from
}
