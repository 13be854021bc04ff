package gpu

import (
	"context"

	"github.com/ringtrain/ringtrain/cuda"
)

// Sizes in bytes of the pinned memory that copies pass through.
const (
	halfBytes = 1 << 20
	backBytes = 1 << 18
)

// A staging is pinned host memory between Go's heap and the device. Its input has two
// halves: the host fills one while the device copies from the other.
type staging struct {
	in, out *cuda.Pinned
	half    int // the half being filled
	used    int // bytes used in that half
	read    [2]cuda.Event
	marked  [2]bool // the device may still copy from the half
	calls   *Calls
}

func (g *staging) open(d *cuda.Device) (err error) {
	if g.in, err = d.AllocPinned(2*halfBytes, false); err != nil {
		return err
	}
	if g.out, err = d.AllocPinned(backBytes, false); err != nil {
		return err
	}
	for i := range g.read {
		if g.read[i], err = d.NewEvent(false); err != nil {
			return err
		}
	}
	return nil
}

// send queues a copy of src to dst. The caller may change src when send returns.
func (g *staging) send(s cuda.Stream, dst cuda.Ptr, src []byte) error {
	for len(src) > 0 {
		if g.used == halfBytes {
			if err := g.turn(s); err != nil {
				return err
			}
		}
		at := g.half*halfBytes + g.used
		n := copy(g.in.Bytes()[at:(g.half+1)*halfBytes], src)
		if err := s.CopyIn(dst, g.in, at, n); err != nil {
			return err
		}
		g.calls.Copies++
		g.used += n
		src, dst = src[n:], dst+cuda.Ptr(n)
	}
	return nil
}

// turn switches to the other half. It waits until the device has read that half.
func (g *staging) turn(s cuda.Stream) error {
	if err := g.read[g.half].Record(s); err != nil {
		return err
	}
	g.marked[g.half] = true
	g.half, g.used = 1-g.half, 0
	if !g.marked[g.half] {
		return nil
	}
	g.marked[g.half] = false
	return g.read[g.half].Sync(context.Background()) // cannot hang: the device makes progress or fails
}

// fetch waits for earlier work and copies from src into dst.
func (g *staging) fetch(s cuda.Stream, dst []byte, src cuda.Ptr) error {
	for len(dst) > 0 {
		n := min(len(dst), backBytes)
		if err := s.CopyOut(g.out, 0, src, n); err != nil {
			return err
		}
		g.calls.Copies++
		if err := s.Sync(context.Background()); err != nil {
			return err
		}
		copy(dst, g.out.Bytes()[:n])
		dst, src = dst[n:], src+cuda.Ptr(n)
	}
	return nil
}

func (g *staging) close() error {
	var first error
	note := func(err error) {
		if first == nil {
			first = err
		}
	}
	for _, e := range g.read {
		if e != (cuda.Event{}) {
			note(e.Destroy())
		}
	}
	for _, m := range []*cuda.Pinned{g.in, g.out} {
		if m != nil {
			note(m.Free())
		}
	}
	return first
}
