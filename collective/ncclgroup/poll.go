package ncclgroup

import (
	"context"
	"time"
)

// Pauses of poll.
const (
	pauseDevice = 50 * time.Microsecond
	pauseNet    = time.Millisecond
	spinFor     = 50 * time.Microsecond // at first, without pauses
)

// poll calls done until it returns true or an error, or until ctx, broken or failed ends.
func poll(ctx context.Context, pause time.Duration, done func() (bool, error), broken, failed <-chan struct{}) error {
	begin := time.Now()
	var tick *time.Ticker
	for {
		if ok, err := done(); ok || err != nil {
			return err
		}
		if tick == nil && time.Since(begin) < spinFor {
			continue
		}
		if tick == nil {
			tick = time.NewTicker(pause)
			defer tick.Stop()
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-broken:
			return errBroken
		case <-failed:
			return errBroken
		}
	}
}

// within returns fn's error, or errAborts if fn has not returned in time. Then fn
// keeps running.
func within(limit time.Duration, fn func() error) error {
	patience := time.NewTimer(limit)
	defer patience.Stop()
	done := make(chan error, 1)
	go func() { done <- fn() }()
	select {
	case err := <-done:
		return err
	case <-patience.C:
		return errAborts
	}
}
