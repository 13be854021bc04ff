package collective

import "fmt"

// inView checks and describes the calls that a rank can make in its View. It
// fills in calls field by field, because copying a Call that was just stored
// would take a tenth of the time of a small call. See Operation.
type inView struct{ view View }

// Rank returns the rank of this process in the View, from 0 to Size()-1.
func (g *inView) Rank() int { return g.view.Self }

// Size returns the number of ranks.
func (g *inView) Size() int { return g.view.Size() }

// View returns the agreed list of members.
func (g *inView) View() View { return g.view }

func (g *inView) allReduce(c *Call, v *Vector, op Op) error {
	if err := reducible(v, op); err != nil {
		return err
	}
	c.Kind, c.DType, c.Op, c.Offset, c.Count = KindAllReduce, v.dtype, op, uint32(v.arena), uint64(v.n)
	return nil
}

func (g *inView) broadcast(c *Call, v *Vector, root int) error {
	if err := g.rooted(KindBroadcast, root); err != nil {
		return err
	}
	c.Kind, c.DType, c.Root, c.Count = KindBroadcast, v.dtype, uint32(root), uint64(v.n)
	return nil
}

func (g *inView) allGather(c *Call, dst, src *Vector) error {
	if err := g.fits(KindAllGather, dst, src, dst.n, src.n*g.Size()); err != nil {
		return err
	}
	c.Kind, c.DType, c.Count = KindAllGather, src.dtype, uint64(src.n)
	return nil
}

// reduceScatter describes the call. nil counts mean equal pieces.
func (g *inView) reduceScatter(c *Call, dst, src *Vector, counts []int, op Op) error {
	want := dst.n * g.Size()
	if counts != nil {
		want = total(counts)
	}
	if err := g.fits(KindReduceScatter, dst, src, src.n, want); err != nil {
		return err
	}
	if err := reducible(src, op); err != nil {
		return err
	}
	c.Kind, c.DType, c.Op, c.Offset, c.Count, c.Root = KindReduceScatter, src.dtype, op, uint32(src.arena), uint64(src.n), digestCounts(counts)
	return nil
}

// fits checks that two vectors have the same type, and that a length is what it
// should be.
func (g *inView) fits(k Kind, dst, src *Vector, got, want int) error {
	if dst.dtype != src.dtype || got != want {
		return fmt.Errorf("collective: %v of %v into %v among %d ranks: types or lengths do not match: got %d elements, want %d", k, *src, *dst, g.Size(), got, want)
	}
	return nil
}

func (g *inView) rooted(k Kind, root int) error {
	if root < 0 || root >= g.Size() {
		return fmt.Errorf("collective: %v with root %d: choose a root from 0 to %d", k, root, g.Size()-1)
	}
	return nil
}

// counted checks that there is a count for every rank.
func (g *inView) counted(k Kind, counts []int) error {
	if len(counts) != g.Size() {
		return fmt.Errorf("collective: %v with %d counts: pass one count for each of %d ranks", k, len(counts), g.Size())
	}
	for r, c := range counts {
		if c < 0 {
			return fmt.Errorf("collective: %v with count %d for rank %d: counts must not be negative", k, c, r)
		}
	}
	return nil
}

func total(counts []int) int {
	n := 0
	for _, c := range counts {
		n += c
	}
	return n
}
