package cuda

import (
	"context"
	"time"
)

// A Stream is a queue of work that the device runs in order. It does not synchronize with
// the default stream.
type Stream struct{ handle uintptr }

// NewStream returns a new stream.
func (d *Device) NewStream() (Stream, error) {
	h, err := streamNew(0)
	return Stream{h}, err
}

// urgent is a priority that the driver clamps to the highest it has.
const urgent = -100

// NewUrgentStream returns a stream whose kernels get free multiprocessors before those of
// other streams. It is for short work that other work will wait for.
func (d *Device) NewUrgentStream() (Stream, error) {
	h, err := streamNew(urgent)
	return Stream{h}, err
}

// Handle returns the driver's CUstream, for other libraries.
func (s Stream) Handle() uintptr { return s.handle }

// Destroy frees the stream once its work is done. It does not wait for that.
func (s Stream) Destroy() error { return streamDestroy(s.handle) }

// Done reports whether all work is done. An error may come from earlier work.
func (s Stream) Done() (bool, error) { return streamDone(s.handle) }

// Wait makes work queued later wait for the event.
func (s Stream) Wait(e Event) error { return streamWait(s.handle, e.handle) }

// How Sync polls, because there is no channel to select on. It spins for spinFor, because
// most waits are short, and then checks every lookEvery.
const (
	spinFor   = 200 * time.Microsecond
	lookEvery = 50 * time.Microsecond
)

// Sync waits until all work is done. If ctx ends first, Sync returns its error and the
// work continues. Other errors may come from earlier work.
func (s Stream) Sync(ctx context.Context) error {
	if ctx.Done() == nil {
		return streamSync(s.handle)
	}
	return pollUntil(ctx, s.Done)
}

// pollUntil calls done until it returns true or an error, or until ctx ends.
func pollUntil(ctx context.Context, done func() (bool, error)) error {
	begin := time.Now()
	var tick *time.Ticker
	for {
		if ok, err := done(); ok || err != nil {
			return err
		}
		if tick == nil && time.Since(begin) < spinFor {
			if ctx.Err() != nil {
				return context.Cause(ctx)
			}
			continue
		}
		if tick == nil {
			tick = time.NewTicker(lookEvery)
			defer tick.Stop()
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

// An Event is a mark in a stream.
type Event struct{ handle uintptr }

// NewEvent returns a new event. Since needs events with timing. Without timing they are
// cheaper.
func (d *Device) NewEvent(timing bool) (Event, error) {
	h, err := eventNew(timing)
	return Event{h}, err
}

// Handle returns the driver's CUevent.
func (e Event) Handle() uintptr { return e.handle }

// Record puts the mark at the end of the stream. It replaces an earlier mark of this event.
func (e Event) Record(s Stream) error { return eventRecord(e.handle, s.handle) }

// Done reports whether the work before the mark is done. It is true if there is no mark.
func (e Event) Done() (bool, error) { return eventDone(e.handle) }

// Sync waits for the work before the mark, or until ctx ends, like Stream.Sync.
func (e Event) Sync(ctx context.Context) error {
	if ctx.Done() == nil {
		return eventSync(e.handle)
	}
	return pollUntil(ctx, e.Done)
}

// Since returns the time from start to e, measured by the device. The work before both
// marks must be done.
func (e Event) Since(start Event) (time.Duration, error) {
	ms, err := eventElapsed(start.handle, e.handle)
	return time.Duration(float64(ms) * float64(time.Millisecond)), err
}

// Destroy frees the event.
func (e Event) Destroy() error { return eventDestroy(e.handle) }
