package crew

import (
	"context"
	"fmt"
	"time"

	"github.com/ringtrain/ringtrain/collective"
)

// A vigil knows when each worker that was asked to stop has last shown progress.
type vigil map[string]time.Time

// stuck is an error that names a worker which has shown none for stopTime.
func (v vigil) stuck(now time.Time) error {
	found := ""
	for name, last := range v {
		if now.Sub(last) >= stopTime && (found == "" || name < found) {
			found = name
		}
	}
	if found == "" {
		return nil
	}
	return fmt.Errorf("%s: %w", found, ErrTooSlow)
}

// getsOn reports whether a rank gets on, as its pulse says, or waits for
// others in a call, which has a deadline of its own and ends when they die. The
// group may be nil.
func getsOn(p *Pulse, g *collective.Group) bool {
	if p.beats(time.Now()) {
		return true
	}
	if g == nil {
		return false
	}
	f := g.Flight()
	return f.InProgress() != nil
}

// everyBeat calls look once stop is closed, and from then on again and again,
// until ctx is done.
func everyBeat(ctx context.Context, stop <-chan struct{}, look func()) {
	select {
	case <-stop:
	case <-ctx.Done():
		return
	}
	ticker := time.NewTicker(beatEvery)
	defer ticker.Stop()
	for {
		look()
		select {
		case <-ticker.C:
		case <-ctx.Done():
			return
		}
	}
}
