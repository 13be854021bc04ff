package gpu

import (
	"errors"

	"github.com/ringtrain/ringtrain/cuda"
)

// A side is a second stream, for work that runs concurrently with the backend's own.
// In a capture, its two waits become edges of the graph.
type side struct {
	stream         cuda.Stream
	forked, joined cuda.Event
	open           bool // it has work that the backend's stream does not wait for yet
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

// fork calls fn to queue work on the side. That work waits for what main has queued.
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

// join makes main wait for the side.
func (s *side) join(main cuda.Stream) error {
	if err := s.joined.Record(s.stream); err != nil {
		return err
	}
	s.open = false
	return main.Wait(s.joined)
}

// close destroys the stream and the events. The side's work must have finished.
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

// Aside is Queue on a second stream. fn's work waits for everything queued before it,
// on either stream. Work queued later does not wait for it until Join, so until then:
//
//   - do not touch what fn's work writes
//   - do not write what fn's work reads
//   - do not Recycle either
//
// Sync and the end of a recording join, too. what names the work in errors.
func (b *Backend) Aside(what string, fn func(cuda.Stream) error) {
	b.queue(what, func(s cuda.Stream) error { return b.side.fork(s, fn) })
}

// Join makes all work queued later wait for the work queued with Aside.
func (b *Backend) Join() {
	if !b.side.open {
		return
	}
	b.queue("Join", b.side.join)
	b.changesAll() // the side's work may have changed factors
}
