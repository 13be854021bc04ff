package bench

import (
	"cmp"
	"context"
	"fmt"
	"os"
	"path/filepath"

	"github.com/ringtrain/ringtrain/collective"
	"github.com/ringtrain/ringtrain/trainer/atomicfile"
	"github.com/ringtrain/ringtrain/trainer/data"
	"github.com/ringtrain/ringtrain/trainer/job"
	"github.com/ringtrain/ringtrain/trainer/job/crew"
	"github.com/ringtrain/ringtrain/trainer/job/event"
	"github.com/ringtrain/ringtrain/trainer/job/tuned"
)

// A TuneRun measures every allreduce algorithm between ranks and saves a table of the
// fastest.
type TuneRun struct {
	Workers int    // on this machine
	Sizes   []int  // bytes
	Out     string // file of the table; "" for the user's cache directory, where jobs look for it
	Place   crew.Place
	Order   tuned.Choice
}

// Launch starts the workers of this machine and waits for them. Its Display sees a
// SizeTuned for each size, and a TableSaved.
func (f *TuneRun) Launch(ctx context.Context, o job.Options) error {
	o = o.WithDefaults()
	if err := f.checkOut(); err != nil {
		return crew.Usage(err)
	}
	if f.Out == "" {
		o.Cache.Prepare("")
	}
	if f.Place.Transport == crew.TransportInProcess {
		return inProcess(ctx, f.Workers, f.Order.HostOrder(), o, func(ctx context.Context, g *collective.Group) error {
			return f.measure(ctx, g, false, crew.Quiet(o.Display))
		})
	}
	place, err := f.Place.Config(f.Workers, o.Stderr)
	if err != nil {
		return crew.Usage(err)
	}
	c := crewAt(place, f.Workers, f.Place.Process, o)
	c.Announce = f.Place.First()
	return c.Launch(ctx)
}

// checkOut checks before any measurement that the table can be saved, if this machine is
// known to save it.
func (f *TuneRun) checkOut() error {
	if f.Place.Nodes > 1 {
		return nil
	}
	dir := filepath.Dir(f.Out)
	if f.Out == "" {
		cache, err := data.OpenCache()
		if err != nil {
			return fmt.Errorf("there is no place for the table: %w: name a file with --out", err)
		}
		dir = cache.Dir
	} else if info, err := os.Stat(f.Out); err == nil && !info.Mode().IsRegular() {
		return fmt.Errorf("--out %s is not a file: name one", f.Out)
	}
	if err := job.PrepareDir(dir); err != nil {
		return fmt.Errorf("there is no place for the table: %w: name a file with --out", err)
	}
	return nil
}

// Work runs one rank as a worker process.
func (f *TuneRun) Work(w *crew.Worker) error {
	if w.Place.Calibration == "" {
		w.Place.Calibration = "refine"
	}
	return stopped(w, measureWith(w, f.Order.HostOrder(), f.Place.JoinTimeout, func(ctx context.Context, g *collective.Group) error {
		return f.measure(ctx, g, w.Place.KeyFile != "", w.Events)
	}))
}

// measure runs one rank's part, in a worker or in this process. Rank 0 reports and
// saves.
func (f *TuneRun) measure(ctx context.Context, g *collective.Group, secured bool, events event.Sink) error {
	var each func(Tuned)
	if g.Rank() == 0 {
		each = func(t Tuned) { events.Emit(&SizeTuned{Tuned: t}) }
	}
	all, err := Tune(ctx, g, f.Sizes, each)
	if err == nil && g.Rank() == 0 {
		err = f.save(g, all, secured, events)
		if err != nil {
			g.Abort(err)
			return err
		}
	}
	err = cmp.Or(err, g.Barrier(ctx)) // other ranks may not have received this rank's last message yet
	if err != nil && !cancelled(err) {
		crew.TellLost(events, g.Rank(), err)
	}
	return err
}

// save writes the table.
func (f *TuneRun) save(g *collective.Group, all []Tuned, secured bool, events event.Sink) error {
	here := tuned.Here(g, f.Order.HostOrder(), secured)
	path := f.Out
	if path == "" {
		cache, err := data.OpenCache()
		if err != nil {
			return fmt.Errorf("saving the table: %w: name a file with --out", err)
		}
		path = filepath.Join(cache.Dir, here.Name())
	}
	if err := atomicfile.WriteFile(path, tuned.Encode(here, TableOf(g.Size(), all)), atomicfile.Options{}); err != nil {
		return fmt.Errorf("saving the table in %s: %w", path, err)
	}
	events.Emit(&TableSaved{Path: path})
	return nil
}
