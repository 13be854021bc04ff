package collective

import "github.com/ringtrain/ringtrain/collective/schedule"

// allGather leaves in dst, on every rank, the src of all ranks in rank order:
// counts[r] elements of rank r, or src.n of each.
func (e *HostEngine) allGather(o *Operation) error {
	h, dst, src, counts := &o.Header, o.Dst, o.Src, o.Counts
	if r := e.reducer(); r != nil && counts == nil && src.Bytes() <= GatherBytes {
		o.share()
		return r.AllGather(o)
	}
	width := src.dtype.Size()
	piece := func(r int) []byte {
		lo, n := place(counts, src.n, r)
		return dst.bytes()[lo*width : (lo+n)*width]
	}
	copy(piece(e.rank), src.bytes())
	plan := schedule.PlanGather(e.size, dst.n/e.size, width, e.situation.OneHost())
	if plan.Method == schedule.Collected && counts != nil { // pieces of different lengths
		plan.Method = schedule.OneShot
	}
	h.Call.Method = uint8(plan.Method)
	want := e.expecting(h)
	if plan.Method == schedule.Collected {
		if err := e.collect(h, want, dst.bytes(), src.Bytes()); err != nil {
			return err
		}
		if err := e.out.flush(); err != nil { // what was sent is overwritten below
			return err
		}
		return e.spread(h, want, dst.bytes())
	}
	if plan.Method != schedule.Ring {
		return e.know(h, plan.Method, piece)
	}
	up, down := schedule.Up(e.rank, e.size), schedule.Down(e.rank, e.size)
	bytes, sent, got := plan.Segment*width, 0, 0
	for i := range e.size - 1 {
		step := schedule.GatherStep(e.rank, e.size, i)
		out, in := piece(step.Send), piece(step.Recv)
		for k := range max(1, messages(len(out), bytes), messages(len(in), bytes)) {
			if k < max(1, messages(len(out), bytes)) {
				e.post(h, up, sent, out[min(k*bytes, len(out)):min((k+1)*bytes, len(out))])
				sent++
			}
			if k < max(1, messages(len(in), bytes)) {
				e.whole[0] = in[min(k*bytes, len(in)):min((k+1)*bytes, len(in))]
				if err := e.receive(want, down, got, e.whole[:]); err != nil {
					return err
				}
				got++
			}
		}
	}
	return nil
}

// broadcast leaves the root's v in v on every rank.
func (e *HostEngine) broadcast(h *Header, v Vector) error {
	plan := schedule.PlanBroadcast(e.size, v.n, v.dtype.Size())
	h.Call.Method = uint8(plan.Method)
	root, mem, want := int(h.Call.Root), v.bytes(), e.expecting(h)
	up, down := schedule.Up(e.rank, e.size), schedule.Down(e.rank, e.size)
	if err := e.compare(h, want); err != nil { // or a root would not notice a second one
		return err
	}
	if plan.Method == schedule.Star {
		if e.rank != root {
			e.in = append(e.in[:0], mem)
			return e.receive(want, root, 1, e.in)
		}
		for i := 1; i < e.size; i++ {
			e.post(h, (e.rank+i)%e.size, 1, mem)
		}
		return nil
	}
	bytes := plan.Segment * v.dtype.Size()
	for lo, part := 0, 1; lo < len(mem); lo, part = lo+bytes, part+1 {
		segment := mem[lo:min(lo+bytes, len(mem))]
		if e.rank != root {
			e.in = append(e.in[:0], segment)
			if err := e.receive(want, down, part, e.in); err != nil {
				return err
			}
		}
		if up != root {
			e.post(h, up, part, segment)
		}
	}
	return nil
}

// barrier returns when every rank has called it.
func (e *HostEngine) barrier(o *Operation) error {
	if r := e.reducer(); r != nil {
		o.Call.Method = uint8(schedule.Shared)
		return r.Barrier(o)
	}
	h := &o.Header
	h.Call.Method = uint8(schedule.PlanBarrier().Method)
	want := e.expecting(h)
	for i := range schedule.Rounds(e.size) {
		to, from := schedule.Round(e.rank, e.size, i)
		e.post(h, to, i)
		if err := e.receive(want, from, i, nil); err != nil {
			return err
		}
	}
	return nil
}
