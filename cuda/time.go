package cuda

import (
	"context"
	"time"
)

// timedRuns is how often Time runs what it times.
const timedRuns = 8

// Time is how long the device takes for what fn queues on s: as a graph that has
// it several times, because one by one the calls of a small kernel take longer
// than the kernel. What fn queues must be allowed in a capture, after a first run outside
// of one, in which libraries load kernels; it runs 17 times.
func (d *Device) Time(s Stream, fn func() error) (took time.Duration, err error) {
	if err := fn(); err != nil {
		return 0, err
	}
	var begin, end Event
	for _, e := range []*Event{&begin, &end} {
		if *e, err = d.NewEvent(true); err != nil {
			return 0, err
		}
		defer func() { _ = e.Destroy() }() // a failure shows where it is used
	}
	g, err := s.Capture(func() error {
		for range timedRuns {
			if err := fn(); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return 0, err
	}
	defer func() { _ = g.Destroy() }()
	for _, queue := range []func() error{
		func() error { return g.Launch(s) }, // the first is not timed
		func() error { return begin.Record(s) },
		func() error { return g.Launch(s) },
		func() error { return end.Record(s) },
		func() error { return end.Sync(context.Background()) }, // it ends: the device goes on, or fails
	} {
		if err := queue(); err != nil {
			return 0, err
		}
	}
	took, err = end.Since(begin)
	return took / timedRuns, err
}
