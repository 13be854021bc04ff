package collective

import "github.com/ringtrain/ringtrain/collective/schedule"

// barrier returns when every rank has called it.
func (c *copier) barrier(o *Operation) error {
	if r := c.reducer(); r != nil {
		o.Call.Method = uint8(schedule.Shared)
		return r.Barrier(o)
	}
	h := &o.Header
	h.Call.Method = uint8(schedule.PlanBarrier().Method)
	want := c.expecting(h)
	for i := range schedule.Rounds(c.size) {
		to, from := schedule.Round(c.rank, c.size, i)
		c.post(h, to, i)
		if err := c.receiveParts(want, from, i, nil); err != nil {
			return err
		}
	}
	return nil
}
