package collective

import "github.com/ringtrain/ringtrain/collective/schedule"

// broadcast copies the root's o.Dst to o.Dst on every rank.
func (c *copier) broadcast(o *Operation) error {
	h, v := &o.Header, o.Dst
	if done, err := c.exchange(o, v.Bytes()); done || err != nil {
		return err
	}
	plan := schedule.PlanBroadcast(c.size, v.n, v.dtype.Size())
	h.Call.Method = uint8(plan.Method)
	root, mem, want := int(h.Call.Root), v.bytes(), c.expecting(h)
	up, down := schedule.Up(c.rank, c.size), schedule.Down(c.rank, c.size)
	if plan.Method == schedule.Star {
		return c.star(h, want, mem)
	}
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

// star sends the root's b to every rank. Every rank hears from the one below, so neighbours
// compare calls, as in compare: where that is the root, by b.
func (c *copier) star(h, want *Header, b []byte) error {
	root := int(h.Call.Root)
	up, down := schedule.Up(c.rank, c.size), schedule.Down(c.rank, c.size)
	switch {
	case c.size == 1:
		return nil
	case c.rank == root:
		for i := 1; i < c.size; i++ {
			c.post(h, (c.rank+i)%c.size, 1, b)
			if i == min(sendSlots, c.size-1) { // posting more could wait for a rank that is root, too
				if err := c.receiveParts(want, down, 0, nil); err != nil {
					return err
				}
			}
		}
		return nil
	}
	c.post(h, up, 0)
	if down != root {
		if err := c.receiveParts(want, down, 0, nil); err != nil {
			return err
		}
	}
	c.in = append(c.in[:0], b)
	return c.receiveParts(want, root, 1, c.in)
}
