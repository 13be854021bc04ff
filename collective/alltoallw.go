package collective

import (
	"cmp"
	"context"
	"fmt"
	"slices"
)

// An AllToAllW is an AllToAllV with pieces that may lie in several places, as in
// MPI_Alltoallw. It can be called many times.
type AllToAllW struct {
	group        *Group
	dtype        DType
	sends, recvs []scattered // by rank
}

// NewAllToAllW prepares the call. src[r] are the vectors of the piece for rank r, in
// order, and dst[r] those of the piece from it. They are in host memory and have
// type t. Vectors of src may overlap. Those of dst must overlap no other.
func NewAllToAllW(g *Group, t DType, dst, src [][]Vector) (*AllToAllW, error) {
	if len(dst) != g.Size() || len(src) != g.Size() {
		return nil, fmt.Errorf("collective: AllToAllW with pieces from %d ranks and for %d: pass a list of vectors for each of %d ranks", len(dst), len(src), g.Size())
	}
	if t.Size() == 0 {
		return nil, fmt.Errorf("collective: AllToAllW: %v is not an element type", t)
	}
	a := &AllToAllW{g, t, make([]scattered, g.Size()), make([]scattered, g.Size())}
	for r := range g.Size() {
		for _, v := range slices.Concat(dst[r], src[r]) {
			if v.dtype != t || v.device >= 0 {
				return nil, fmt.Errorf("collective: AllToAllW of %v with rank %d: %w: pass vectors of type %v in host memory", v, r, ErrUnsupported, t)
			}
		}
		a.sends[r], a.recvs[r] = scatter(src[r]), scatter(dst[r])
	}
	if err := apart(dst, src); err != nil {
		return nil, err
	}
	if own := g.Rank(); sum(a.sends[own]) != sum(a.recvs[own]) {
		return nil, fmt.Errorf("collective: AllToAllW: rank %d sends itself %d bytes and receives %d: pass pieces of one length", own, sum(a.sends[own]), sum(a.recvs[own]))
	}
	return a, nil
}

// apart returns an error if a vector of dst shares memory with another vector. It sorts all of
// them by address, so that it need not compare each with each.
func apart(dst, src [][]Vector) error {
	type piece struct {
		Vector
		written bool
	}
	var all []piece
	for i, lists := range [][][]Vector{dst, src} {
		for _, v := range slices.Concat(lists...) {
			if v.n > 0 {
				all = append(all, piece{v, i == 0})
			}
		}
	}
	slices.SortFunc(all, func(a, b piece) int { return cmp.Compare(uintptr(a.host), uintptr(b.host)) })
	end := func(v *Vector) uintptr { return uintptr(v.host) + uintptr(v.Bytes()) }
	further := func(a, b *Vector) *Vector {
		if a == nil || end(a) < end(b) {
			return b
		}
		return a
	}
	var last, written *Vector // of those before, and of those of dst among them, the one that ends last
	for i := range all {
		v, before := &all[i].Vector, written
		if all[i].written {
			before = last
		}
		if before != nil && before.overlaps(v) {
			return fmt.Errorf("collective: AllToAllW: %v and %v share memory, and one of them is written to: give each vector of dst memory of its own", *before, *v)
		}
		last = further(last, v)
		if all[i].written {
			written = further(written, v)
		}
	}
	return nil
}

// Call makes the call. All ranks of the group make it, or call AllToAllV.
func (a *AllToAllW) Call(ctx context.Context) error {
	c := a.call()
	if err := a.group.turn(ctx, &c); err != nil {
		return err
	}
	return a.carryOut(ctx, &c)
}

// Start is Call in the background; see Group.AllReduceAsync.
func (a *AllToAllW) Start(ctx context.Context) *Work {
	c := a.call()
	return a.group.queue(ctx, &c, func() error { return a.carryOut(ctx, &c) })
}

func (a *AllToAllW) call() Call { return Call{Kind: KindAllToAll, DType: a.dtype, Root: pairCounts} }

func (a *AllToAllW) carryOut(ctx context.Context, c *Call) error {
	g := a.group
	limited, err := g.begin(ctx, c)
	if err != nil {
		return err
	}
	defer g.watchdog.finish()
	g.seq++
	o, none := &g.ops[0], Vector{device: -1, dtype: a.dtype}
	o.set(g.seq, g.step.Load(), c, &none, &none)
	o.W = a
	return g.finish(limited, o, g.engine.Start(o))
}
