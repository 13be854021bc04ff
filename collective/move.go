package collective

import "github.com/ringtrain/ringtrain/collective/schedule"

// allGather leaves the src of all ranks, in rank order, in dst on every rank.
// Rank r contributes counts[r] elements, or src.n if counts is nil.
func (m *mover) allGather(o *Operation) error {
	h, dst, src, counts := &o.Header, o.Dst, o.Src, o.Counts
	if r := m.reducer(); r != nil && counts == nil && src.Bytes() <= GatherBytes {
		o.share()
		m.gathered += src.Bytes()
		return r.AllGather(o)
	}
	width := src.dtype.Size()
	piece := func(r int) []byte {
		lo, n := place(counts, src.n, r)
		return dst.bytes()[lo*width : (lo+n)*width]
	}
	copy(piece(m.rank), src.bytes())
	plan := schedule.PlanGather(m.size, dst.n/m.size, width, m.situation.OneHost())
	if plan.Method == schedule.Collected && counts != nil { // a tree needs pieces of one length
		plan.Method = schedule.OneShot
	}
	h.Call.Method = uint8(plan.Method)
	want := m.expecting(h)
	if plan.Method == schedule.Collected {
		if err := m.collect(h, want, dst.bytes(), src.Bytes()); err != nil {
			return err
		}
		if err := m.flush(); err != nil { // spread overwrites what was sent
			return err
		}
		return m.spread(h, want, dst.bytes())
	}
	if plan.Method != schedule.Ring {
		return m.know(h, plan.Method, piece)
	}
	up, down := schedule.Up(m.rank, m.size), schedule.Down(m.rank, m.size)
	bytes, sent, got := plan.Segment*width, 0, 0
	for i := range m.size - 1 {
		step := schedule.GatherStep(m.rank, m.size, i)
		out, in := piece(step.Send), piece(step.Recv)
		for k := range max(1, messages(len(out), bytes), messages(len(in), bytes)) {
			if k < max(1, messages(len(out), bytes)) {
				m.post(h, up, sent, out[min(k*bytes, len(out)):min((k+1)*bytes, len(out))])
				sent++
			}
			if k < max(1, messages(len(in), bytes)) {
				if err := m.receive(want, down, got, in[min(k*bytes, len(in)):min((k+1)*bytes, len(in))]); err != nil {
					return err
				}
				got++
			}
		}
	}
	return nil
}

// broadcast copies the root's v to v on every rank.
func (m *mover) broadcast(h *Header, v Vector) error {
	plan := schedule.PlanBroadcast(m.size, v.n, v.dtype.Size())
	h.Call.Method = uint8(plan.Method)
	root, mem, want := int(h.Call.Root), v.bytes(), m.expecting(h)
	up, down := schedule.Up(m.rank, m.size), schedule.Down(m.rank, m.size)
	if err := m.compare(h, want); err != nil { // otherwise a root would not notice that another rank is root, too
		return err
	}
	if plan.Method == schedule.Star {
		if m.rank != root {
			m.in = append(m.in[:0], mem)
			return m.receiveParts(want, root, 1, m.in)
		}
		for i := 1; i < m.size; i++ {
			m.post(h, (m.rank+i)%m.size, 1, mem)
		}
		return nil
	}
	bytes := plan.Segment * v.dtype.Size()
	for lo, part := 0, 1; lo < len(mem); lo, part = lo+bytes, part+1 {
		segment := mem[lo:min(lo+bytes, len(mem))]
		if m.rank != root {
			m.in = append(m.in[:0], segment)
			if err := m.receiveParts(want, down, part, m.in); err != nil {
				return err
			}
		}
		if up != root {
			m.post(h, up, part, segment)
		}
	}
	return nil
}

// barrier returns when every rank has called it.
func (m *mover) barrier(o *Operation) error {
	if r := m.reducer(); r != nil {
		o.Call.Method = uint8(schedule.Shared)
		return r.Barrier(o)
	}
	h := &o.Header
	h.Call.Method = uint8(schedule.PlanBarrier().Method)
	want := m.expecting(h)
	for i := range schedule.Rounds(m.size) {
		to, from := schedule.Round(m.rank, m.size, i)
		m.post(h, to, i)
		if err := m.receiveParts(want, from, i, nil); err != nil {
			return err
		}
	}
	return nil
}
