package cuda

import (
	"context"
	"time"
)

// timedRuns is the number of repetitions in the graph that Time launches.
const timedRuns = 8

// Time returns how long the device takes for the work that fn queues on s. It times a graph
// that repeats the work, because launching a small kernel takes longer than running it. The
// work must be allowed in a capture once it has run outside of one, which loads the
// libraries' kernels. It runs 17 times.
func (d *Device) Time(s Stream, fn func() error) (took time.Duration, err error) {
	if err := fn(); err != nil {
		return 0, err
	}
	var begin, end Event
	for _, e := range []*Event{&begin, &end} {
		if *e, err = d.NewEvent(true); err != nil {
			return 0, err
		}
		defer func() { _ = e.Destroy() }() // a failed device also fails the calls below
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
		func() error { return end.Sync(context.Background()) }, // cannot hang: the device makes progress or fails
	} {
		if err := queue(); err != nil {
			return 0, err
		}
	}
	took, err = end.Since(begin)
	return took / timedRuns, err
}
