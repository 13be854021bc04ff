package cli

import (
	"context"
	"os"

	"github.com/ringtrain/ringtrain/collective"
	"github.com/ringtrain/ringtrain/trainer/data"
	"github.com/ringtrain/ringtrain/trainer/job/crew"
	"github.com/ringtrain/ringtrain/trainer/job/event"
)

// trainInProcess runs all workers as goroutines of this process.
func (a *app) trainInProcess(ctx context.Context, s *settings, set *data.Set, show *screen, signals <-chan os.Signal) error {
	events := event.Sink(show)
	if !s.flags.json {
		events = crew.Quiet(show) // the error of the rank that failed says it all
	}
	views, transports := collective.Local(s.workers)
	return crew.InProcess(ctx, s.workers, signals, func(ctx context.Context, seat *crew.Seat) error {
		i, taps := seat.Rank, newTaps(s.flags)
		g := collective.NewGroup(views[i], collective.OverTransport(views[i], transports[i]), collective.Options{Order: s.flags.HostOrder(), Observer: taps.observer()})
		defer g.Close()
		if err := taps.open(views[i], i); err != nil {
			g.Abort(err)
			return err
		}
		defer taps.close(a.stderr)
		r := &rank{settings: s, group: g, set: set, events: events, teller: i == 0, taps: taps, stop: seat.Stop, held: true, pulse: crew.NewPulse()}
		defer seat.Watch(r.pulse, g)()
		err := r.run(ctx)
		if err != nil {
			crew.TellLost(events, i, err)
		}
		return err
	})
}
