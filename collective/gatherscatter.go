package collective

import (
	"github.com/ringtrain/ringtrain/collective/fold"
	"github.com/ringtrain/ringtrain/collective/schedule"
)

// gather leaves the o.Src of all ranks, in rank order, in o.Dst on the root.
func (c *copier) gather(o *Operation) error {
	h, dst, src := &o.Header, o.Dst, o.Src
	if done, err := c.exchange(o, src.Bytes()); done || err != nil {
		return err
	}
	each, per := src.Bytes(), schedule.SegmentBytes
	root, want, err := c.rooted(h)
	if err != nil {
		return err
	}
	if c.rank != root {
		for k := range messages(each, per) {
			c.post(h, root, 1+k, src.bytes()[k*per:min((k+1)*per, each)])
		}
		return nil
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
	if done, err := c.exchange(o, c.size*dst.Bytes()); done || err != nil {
		return err
	}
	each, per := dst.Bytes(), schedule.SegmentBytes
	root, want, err := c.rooted(h)
	if err != nil {
		return err
	}
	if c.rank != root {
		for k := range messages(each, per) {
			if err := c.receive(want, root, 1+k, dst.bytes()[k*per:min((k+1)*per, each)]); err != nil {
				return err
			}
		}
		return nil
	}
	for i := 1; i < c.size; i++ {
		to, _ := schedule.Pair(c.rank, c.size, i)
		theirs := src.bytes()[to*each : (to+1)*each]
		for k := range messages(each, per) {
			c.post(h, to, 1+k, theirs[k*per:min((k+1)*per, each)])
		}
	}
	fold.CopyPast(dst.bytes(), src.bytes()[root*each:(root+1)*each])
	return nil
}
