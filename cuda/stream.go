package cuda

import (
	"context"
	"time"
)

// A Stream is a queue of work for the device, done in order. It does not wait
// for the default stream.
type Stream struct{ handle uintptr }

// NewStream makes a stream.
func (d *Device) NewStream() (Stream, error) {
	h, err := streamNew(0)
	return Stream{h}, err
}

// urgent is a priority that the driver replaces by the greatest there is.
const urgent = -100

// NewUrgentStream makes a stream whose kernels get the next free multiprocessors,
// before those of other streams: for short work that others will wait for.
func (d *Device) NewUrgentStream() (Stream, error) {
	h, err := streamNew(urgent)
	return Stream{h}, err
}

// Handle is the driver's CUstream, for other libraries.
func (s Stream) Handle() uintptr { return s.handle }

// Destroy frees the stream after the work in it is done, without waiting.
func (s Stream) Destroy() error { return streamDestroy(s.handle) }

// Done reports whether all work is done. An error may be of earlier work.
func (s Stream) Done() (bool, error) { return streamDone(s.handle) }

// Wait makes what is queued later wait for the event.
func (s Stream) Wait(e Event) error { return streamWait(s.handle, e.handle) }

// Waiting for a device. There is nothing to select on, so Sync looks again and
// again: without a pause at first, because most waits are short.
const (
	spinFor   = 200 * time.Microsecond
	lookEvery = 50 * time.Microsecond
)

// Sync waits until all work is done, or for ctx, whose error it then returns;
// the work goes on. Another error may be of earlier work.
func (s Stream) Sync(ctx context.Context) error {
	if ctx.Done() == nil {
		return streamSync(s.handle)
	}
	return pollUntil(ctx, s.Done)
}

// pollUntil asks done until it says so, fails, or ctx ends.
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

// NewEvent makes an event. With timing, Since can be asked; without, it is cheaper.
func (d *Device) NewEvent(timing bool) (Event, error) {
	h, err := eventNew(timing)
	return Event{h}, err
}

// Handle is the driver's CUevent.
func (e Event) Handle() uintptr { return e.handle }

// Record puts the mark at the end of the stream; where it was before is forgotten.
func (e Event) Record(s Stream) error { return eventRecord(e.handle, s.handle) }

// Done reports whether the work before the mark is done; so it is if there is none.
func (e Event) Done() (bool, error) { return eventDone(e.handle) }

// Sync waits for the work before the mark, or for ctx, as Stream.Sync does.
func (e Event) Sync(ctx context.Context) error {
	if ctx.Done() == nil {
		return eventSync(e.handle)
	}
	return pollUntil(ctx, e.Done)
}

// Since is the time from start to e, as the device measured it. Both marks have
// been passed.
func (e Event) Since(start Event) (time.Duration, error) {
	ms, err := eventElapsed(start.handle, e.handle)
	return time.Duration(float64(ms) * float64(time.Millisecond)), err
}

// Destroy frees the event.
func (e Event) Destroy() error { return eventDestroy(e.handle) }
