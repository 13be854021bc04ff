package job

import (
	"context"

	"github.com/ringtrain/ringtrain/collective"
	"github.com/ringtrain/ringtrain/trainer/catalog"
	"github.com/ringtrain/ringtrain/trainer/job/crew"
	"github.com/ringtrain/ringtrain/trainer/job/event"
)

// trainInProcess runs all workers as goroutines of this process.
func (s *Training) trainInProcess(ctx context.Context, rows catalog.Rows, o Options) error {
	events := event.Sink(o.Display)
	if !o.Verbatim {
		events = crew.Quiet(o.Display) // the job's error names the lost rank
	}
	ranks := s.Workers + s.Spec.ServerProcesses()
	views, transports := collective.Local(ranks)
	for r := s.Workers; r < ranks; r++ {
		views[0].Members[r].Role = collective.Server // the views share the list
	}
	return crew.InProcess(ctx, ranks, o.Signals, func(ctx context.Context, seat *crew.Seat) error {
		i, taps := seat.Rank, newTaps(s.Spec.Watch)
		all := collective.NewGroup(views[i], collective.OverTransport(views[i], transports[i]), collective.Options{Order: s.Spec.Order.HostOrder(), Observer: taps.observer()})
		defer all.Close()
		if i >= s.Workers {
			defer seat.Watch(crew.NewPulse(), all)()
			return Serve(ctx, s, all)
		}
		g, served, err := WorkersOf(ctx, all)
		if err != nil {
			return err
		}
		defer g.Close()
		defer taps.close(o.Stderr)
		if err := taps.open(views[i], i); err != nil {
			g.Abort(err)
			return err
		}
		r := &rank{training: s, group: g, combining: combining{served: served}, rows: rows, events: events, leader: i == 0, taps: taps, stop: seat.Stop, locked: true, pulse: crew.NewPulse()}
		defer seat.Watch(r.pulse, g)()
		err = r.run(ctx)
		if err != nil {
			crew.TellLost(events, i, err)
		}
		return err
	})
}
