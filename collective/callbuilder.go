package collective

import (
	"fmt"
	"math"
)

// A callBuilder checks the arguments of a call and fills in its Call, field by
// field: copying a Call that was just stored would take a tenth of the time of a
// small call. See Operation.
type callBuilder struct{ view View }

// Rank returns the rank of this process in the View, from 0 to Size()-1.
func (b *callBuilder) Rank() int { return b.view.Self }

// Size returns the number of ranks.
func (b *callBuilder) Size() int { return b.view.Size() }

// View returns the agreed list of members.
func (b *callBuilder) View() View { return b.view }

func (b *callBuilder) allReduce(c *Call, v *Vector, op Op) error {
	if err := reducible(v, op); err != nil {
		return err
	}
	c.Kind, c.DType, c.Op, c.Offset, c.Count = KindAllReduce, v.dtype, op, uint32(v.arena), uint64(v.n)
	return nil
}

func (b *callBuilder) broadcast(c *Call, v *Vector, root int) error {
	if err := b.rooted(KindBroadcast, root); err != nil {
		return err
	}
	c.Kind, c.DType, c.Root, c.Count = KindBroadcast, v.dtype, uint32(root), uint64(v.n)
	return nil
}

func (b *callBuilder) allGather(c *Call, dst, src *Vector) error {
	if err := b.fits(KindAllGather, dst, src, dst.n, src.n*b.Size()); err != nil {
		return err
	}
	if !pieceOf(dst, src, b.Rank()*src.n) {
		return overlapping(KindAllGather, dst, src)
	}
	c.Kind, c.DType, c.Count = KindAllGather, src.dtype, uint64(src.n)
	return nil
}

// reduceScatter describes the call. nil counts mean equal pieces.
func (b *callBuilder) reduceScatter(c *Call, dst, src *Vector, counts []int, op Op) error {
	want := dst.n * b.Size()
	if counts != nil {
		want = total(counts)
	}
	if err := b.fits(KindReduceScatter, dst, src, src.n, want); err != nil {
		return err
	}
	if err := reducible(src, op); err != nil {
		return err
	}
	own := b.Rank() * dst.n
	if counts != nil {
		own = total(counts[:b.Rank()])
	}
	if !pieceOf(src, dst, own) {
		return overlapping(KindReduceScatter, dst, src)
	}
	c.Kind, c.DType, c.Op, c.Offset, c.Count, c.Root = KindReduceScatter, src.dtype, op, uint32(src.arena), uint64(src.n), digestCounts(counts)
	return nil
}

// fits checks that two vectors have the same type, and that a length is what it
// should be.
func (b *callBuilder) fits(k Kind, dst, src *Vector, got, want int) error {
	switch {
	case dst.dtype.Size() == 0 || src.dtype.Size() == 0:
		return zeroVector(k)
	case dst.dtype != src.dtype:
		return fmt.Errorf("collective: %v of %v into %v: the vectors must have the same type", k, *src, *dst)
	case got != want:
		return fmt.Errorf("collective: %v of %v into %v among %d ranks: lengths do not match: got %d elements, want %d", k, *src, *dst, b.Size(), got, want)
	}
	return nil
}

func zeroVector(k Kind) error {
	return fmt.Errorf("collective: %v of a zero Vector: make Vectors with Of", k)
}

// pieceOf reports whether piece is the elements of whole from own on, or shares no memory
// with it at all.
func pieceOf(whole, piece *Vector, own int) bool {
	if !whole.overlaps(piece) {
		return true
	}
	if own+piece.n > whole.n {
		return false
	}
	place := whole.Slice(own, own+piece.n)
	return place.same(piece)
}

// overlapping returns the error of a call whose vectors share memory where they must not.
func overlapping(call any, dst, src *Vector) error {
	return fmt.Errorf("collective: %v of %v into %v: the two share memory, so elements would be overwritten before they are used", call, *src, *dst)
}

func (b *callBuilder) rooted(k Kind, root int) error {
	if root < 0 || root >= b.Size() {
		return fmt.Errorf("collective: %v with root %d: choose a root from 0 to %d", k, root, b.Size()-1)
	}
	return nil
}

// counted checks that a V operation has a count for every rank, and that their sum does not overflow.
func (b *callBuilder) counted(k Kind, counts []int) error {
	if len(counts) != b.Size() {
		return fmt.Errorf("collective: %vV with %d counts: pass one count for each of %d ranks", k, len(counts), b.Size())
	}
	room := math.MaxInt
	for r, c := range counts {
		if c < 0 {
			return fmt.Errorf("collective: %vV with count %d for rank %d: counts must not be negative", k, c, r)
		}
		if room -= c; room < 0 {
			return fmt.Errorf("collective: %vV with counts %v: their sum overflows an int", k, counts)
		}
	}
	return nil
}
