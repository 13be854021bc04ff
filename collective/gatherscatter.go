package collective

import (
	"github.com/ringtrain/ringtrain/collective/fold"
	"github.com/ringtrain/ringtrain/collective/schedule"
)

// gather leaves the o.Src of all ranks, in rank order, in o.Dst on the root.
func (c *copier) gather(o *Operation) error {
	h, dst, src := &o.Header, o.Dst, o.Src
	if done, err := c.exchange(o); done || err != nil {
		return err
	}
	each, per := src.Bytes(), schedule.SegmentBytes
	root, want := c.rooted(h)
	if each == 0 {
		return c.compare(h, want)
	}
	if c.rank != root {
		return c.give(h, want, src.bytes(), per)
	}
	if c.size > 1 {
		c.tell(h)
	}
	fold.CopyPast(dst.bytes()[root*each:], src.bytes())
	for i := 1; i < c.size; i++ {
		_, from := schedule.Pair(c.rank, c.size, i)
		theirs := dst.bytes()[from*each : (from+1)*each]
		for k := range messages(each, per) {
			if err := c.receive(want, from, 1+k, theirs[k*per:min((k+1)*per, each)]); err != nil {
				return err
			}
		}
	}
	return nil
}

// scatter leaves each rank's piece of the root's o.Src in its o.Dst.
func (c *copier) scatter(o *Operation) error {
	h, dst, src := &o.Header, o.Dst, o.Src
	if done, err := c.exchange(o); done || err != nil {
		return err
	}
	each := dst.Bytes()
	root, want := c.rooted(h)
	piece := func(rank int) []byte { return src.bytes()[rank*each : (rank+1)*each] }
	if err := c.deal(h, want, each, piece, dst.bytes()); err != nil {
		return err
	}
	if c.rank == root {
		fold.CopyPast(dst.bytes(), piece(root))
	}
	return nil
}
