package gpu

import (
	"errors"

	"github.com/ringtrain/ringtrain/cuda"
)

// A side is a second stream, for work that goes on beside the backend's own. Where
// both are captured the two waits become edges of the graph.
type side struct {
	stream         cuda.Stream
	forked, joined cuda.Event
	open           bool // something is there that the backend's stream does not wait for
}

func (s *side) start(d *cuda.Device) (err error) {
	if s.stream, err = d.NewUrgentStream(); err != nil {
		return err
	}
	if s.forked, err = d.NewEvent(false); err != nil {
		return err
	}
	s.joined, err = d.NewEvent(false)
	return err
}

// fork runs fn, which queues work on the side, after what is queued on main.
func (s *side) fork(main cuda.Stream, fn func(cuda.Stream) error) error {
	if err := s.forked.Record(main); err != nil {
		return err
	}
	if err := s.stream.Wait(s.forked); err != nil {
		return err
	}
	s.open = true
	return fn(s.stream)
}

// join has main wait for the side.
func (s *side) join(main cuda.Stream) error {
	if err := s.joined.Record(s.stream); err != nil {
		return err
	}
	s.open = false
	return main.Wait(s.joined)
}

// close ends the side, whose work is done.
func (s *side) close() error {
	var all []error
	for _, e := range []cuda.Event{s.forked, s.joined} {
		if e != (cuda.Event{}) {
			all = append(all, e.Destroy())
		}
	}
	if s.stream != (cuda.Stream{}) {
		all = append(all, s.stream.Destroy())
	}
	return errors.Join(all...)
}

// Aside is Queue on a second stream: what fn queues comes after all that was queued
// before and after earlier work aside, but what is queued later does not wait for it
// before Join. Until then that leaves alone what fn's work writes, and does not
// write what it reads, nor does Recycle end the life of either. Sync joins too, and
// so does the end of a recording.
func (b *Backend) Aside(what string, fn func(cuda.Stream) error) {
	b.queue(what, func(s cuda.Stream) error { return b.side.fork(s, fn) })
}

// Join has all that is queued later wait for what was queued by Aside.
func (b *Backend) Join() {
	if !b.side.open {
		return
	}
	b.queue("Join", b.side.join)
	b.changesAll() // what was done aside may have changed factors
}
