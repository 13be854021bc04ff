package crew

import (
	"context"
	"fmt"
	"time"

	"github.com/ringtrain/ringtrain/collective"
)

// A watchdog holds the time of the last progress of each worker that was asked to stop.
type watchdog map[string]time.Time

// stuck returns an error that names a worker without progress for stallTime, the first by
// name; nil if there is none.
func (v watchdog) stuck(now time.Time) error {
	found := ""
	for name, last := range v {
		if now.Sub(last) >= stallTime && (found == "" || name < found) {
			found = name
		}
	}
	if found == "" {
		return nil
	}
	return fmt.Errorf("%s: %w", found, ErrTooSlow)
}

// makesProgress reports whether a rank makes progress by its pulse, or waits for others
// in a call. A call has a deadline of its own, and fails if they die. g may be nil.
// While they train, workers that do not step together always wait for messages, which is no
// progress.
func makesProgress(p *Pulse, g *collective.Group) bool {
	if p.active(time.Now()) {
		return true
	}
	if g == nil {
		return false
	}
	f := g.Flight()
	c := f.InProgress()
	return c != nil && !(c.Call.Kind == collective.KindMessage && p.blind())
}

// pollProgress calls poll when stop is closed, and every reportEvery from then on, until
// ctx is done.
func pollProgress(ctx context.Context, stop <-chan struct{}, poll func()) {
	select {
	case <-stop:
	case <-ctx.Done():
		return
	}
	ticker := time.NewTicker(reportEvery)
	defer ticker.Stop()
	for {
		poll()
		select {
		case <-ticker.C:
		case <-ctx.Done():
			return
		}
	}
}
