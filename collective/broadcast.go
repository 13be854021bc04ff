package collective

import "github.com/ringtrain/ringtrain/collective/schedule"

// broadcast copies the root's v to v on every rank.
func (c *copier) broadcast(h *Header, v Vector) error {
	plan := schedule.PlanBroadcast(c.size, v.n, v.dtype.Size())
	h.Call.Method = uint8(plan.Method)
	root, mem, want := int(h.Call.Root), v.bytes(), c.expecting(h)
	up, down := schedule.Up(c.rank, c.size), schedule.Down(c.rank, c.size)
	if err := c.compare(h, want); err != nil { // otherwise a root would not notice that another rank is root, too
		return err
	}
	if plan.Method == schedule.Star {
		if c.rank != root {
			c.in = append(c.in[:0], mem)
			return c.receiveParts(want, root, 1, c.in)
		}
		for i := 1; i < c.size; i++ {
			c.post(h, (c.rank+i)%c.size, 1, mem)
		}
		return nil
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
