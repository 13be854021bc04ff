package collective

import "github.com/ringtrain/ringtrain/collective/schedule"

// allGather leaves in dst, on every rank, the src of all ranks in rank order.
func (e *hostEngine) allGather(h *Header, dst, src Vector) error {
	all, width := dst.bytes(), src.Bytes()
	mine := all[e.rank*width : (e.rank+1)*width]
	copy(mine, src.bytes())
	plan := schedule.PlanGather(e.size, src.n, src.dtype.Size())
	h.Call.Method = uint8(plan.Method)
	want := *h
	if plan.Method == schedule.OneShot {
		for i := 1; i < e.size; i++ {
			to, from := schedule.Pair(e.rank, e.size, i)
			e.post(h, to, 0, mine)
			e.in = append(e.in[:0], all[from*width:(from+1)*width])
			if err := e.receive(&want, from, 0, e.in); err != nil {
				return err
			}
		}
		return nil
	}
	up, down, part := schedule.Up(e.rank, e.size), schedule.Down(e.rank, e.size), 0
	bytes := plan.Segment * src.dtype.Size()
	for i := range e.size - 1 {
		step := schedule.GatherStep(e.rank, e.size, i)
		for lo := 0; lo < width; lo += bytes {
			hi := min(lo+bytes, width)
			e.post(h, up, part, all[step.Send*width+lo:step.Send*width+hi])
			e.in = append(e.in[:0], all[step.Recv*width+lo:step.Recv*width+hi])
			if err := e.receive(&want, down, part, e.in); err != nil {
				return err
			}
			part++
		}
	}
	return nil
}

// broadcast leaves the root's v in v on every rank.
func (e *hostEngine) broadcast(h *Header, v Vector) error {
	plan := schedule.PlanBroadcast(e.size, v.n, v.dtype.Size())
	h.Call.Method = uint8(plan.Method)
	root, mem, want := int(h.Call.Root), v.bytes(), *h
	up, down := schedule.Up(e.rank, e.size), schedule.Down(e.rank, e.size)
	if e.size == 1 {
		return nil
	}
	// A root receives nothing by itself and would not notice a second root. So
	// this operation begins as the others do: with a message to the rank above,
	// by which neighbours compare calls.
	e.post(h, up, 0)
	if err := e.receive(&want, down, 0, nil); err != nil {
		return err
	}
	if plan.Method == schedule.Star {
		if e.rank != root {
			e.in = append(e.in[:0], mem)
			return e.receive(&want, root, 1, e.in)
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
			if err := e.receive(&want, down, part, e.in); err != nil {
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
func (e *hostEngine) barrier(h *Header) error {
	h.Call.Method = uint8(schedule.PlanBarrier().Method)
	want := *h
	for i := range schedule.Rounds(e.size) {
		to, from := schedule.Round(e.rank, e.size, i)
		e.post(h, to, i)
		if err := e.receive(&want, from, i, nil); err != nil {
			return err
		}
	}
	return nil
}
