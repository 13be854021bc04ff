package collective

import "github.com/ringtrain/ringtrain/collective/schedule"

// broadcast copies the root's o.Dst to o.Dst on every rank.
func (c *copier) broadcast(o *Operation) error {
	h, v := &o.Header, o.Dst
	if done, err := c.exchange(o); done || err != nil {
		return err
	}
	plan := schedule.PlanBroadcast(c.size, v.n, v.dtype.Size())
	h.Call.Method = uint8(plan.Method)
	root, mem, want := int(h.Call.Root), v.bytes(), c.expecting(h)
	if plan.Method == schedule.Star {
		return c.deal(h, want, len(mem), func(int) []byte { return mem }, mem)
	}
	up, down := schedule.Up(c.rank, c.size), schedule.Down(c.rank, c.size)
	if err := c.compare(h, want); err != nil { // otherwise a root would not notice that another rank is root, too
		return err
	}
	bytes := plan.Segment * v.dtype.Size()
	for lo, part := 0, 1; lo < len(mem); lo, part = lo+bytes, part+1 {
		segment := mem[lo:min(lo+bytes, len(mem))]
		if c.rank != root {
			c.in = append(c.in[:0], segment)
			if err := c.receiveParts(want, down, part, c.in); err != nil {
				return err
			}
		}
		if up != root {
			c.post(h, up, part, segment)
		}
	}
	return nil
}
