package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"os/signal"
	"path/filepath"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/ringtrain/ringtrain/bench"
	"github.com/ringtrain/ringtrain/collective"
	"github.com/ringtrain/ringtrain/trainer/atomicfile"
	"github.com/ringtrain/ringtrain/trainer/data"
	"github.com/ringtrain/ringtrain/trainer/job/crew"
	"github.com/ringtrain/ringtrain/trainer/job/event"
	"github.com/ringtrain/ringtrain/trainer/job/tuned"
)

// tuneFlags are the flags of "tune".
type tuneFlags struct {
	workers    int
	begin, end string
	factor     int
	out        string
	orderFlags
	placeFlags
}

func (a *app) tuneCommand() *cobra.Command {
	var f tuneFlags
	cmd := &cobra.Command{
		Use:   "tune [flags]",
		Short: "Find the fastest allreduce algorithm for each size",
		Long: `Measure an allreduce between ranks over a range of sizes, by each algorithm that they can
use, in turns. Print the fastest algorithm of each size, its time as predicted and as
measured, and save the table. From then on, train and bench collective use the table where
ranks, hosts, transport, --streams, CPU, program and --order are the same (see their flag
--tune).

With --order ring, the default, only algorithms of ring order are tried, so the table changes how
long sums take and never their bits. With --nodes M, give the same command on each of M
machines; the machine of rank 0 prints and saves the table.`,
		Example: `  ringtrain tune --workers 4
  ringtrain tune --workers 2 --transport tcp --order any -e 4M`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := a.identify(); err != nil {
				return err
			}
			if err := a.adopt(&f.placeFlags, &f.workers, "workers", cmd.Flags().Changed); err != nil {
				return usage(err)
			}
			sizes, err := f.check(cmd.Flags().Changed)
			if err != nil {
				return usage(err)
			}
			return a.tune(cmd.Context(), f, sizes)
		},
	}
	under(cmd, measureFlags, func(flags *pflag.FlagSet) {
		flags.IntVar(&f.workers, "workers", 2, "start `N` ranks on this machine")
		addSweep(flags, &f.begin, &f.end, &f.factor, "16M")
	})
	f.placeFlags.register(cmd)
	f.registerOrder(cmd)
	under(cmd, outputFlags, func(flags *pflag.FlagSet) {
		flags.StringVar(&f.out, "out", "", "write the table to `FILE` (default a file in the user's cache directory, where train and bench collective look)")
	})
	return cmd
}

// check finds what is wrong with the flags alone, and is the sizes.
func (f *tuneFlags) check(given func(string) bool) ([]int, error) {
	f.Table = tuned.Off
	if f.workers < 1 || f.workers > mostRanks {
		return nil, fmt.Errorf("--workers must be from 1 to %d", mostRanks)
	}
	if f.workers*f.Nodes < 2 {
		return nil, errors.New("one rank has nothing to exchange: give --workers or --nodes")
	}
	begin, err := bench.ParseSize(f.begin)
	if err != nil {
		return nil, fmt.Errorf("-b: %w", err)
	}
	end, err := bench.ParseSize(f.end)
	if err != nil {
		return nil, fmt.Errorf("-e: %w", err)
	}
	if begin < 4 {
		return nil, errors.New("-b must be at least 4, which is one element")
	}
	if err := f.Choice.Check(); err != nil {
		return nil, err
	}
	if err := f.placeFlags.check(given); err != nil {
		return nil, err
	}
	return bench.Sweep(begin, end, f.factor)
}

// tune is the whole of "tune", as launcher or as worker.
func (a *app) tune(ctx context.Context, f tuneFlags, sizes []int) error {
	return a.run(ctx, func(ctx context.Context) error { return a.launchTune(ctx, f, sizes) },
		func(_ context.Context, w *worker) error { return w.tune(f, sizes) })
}

// launchTune is the launcher's part.
func (a *app) launchTune(ctx context.Context, f tuneFlags, sizes []int) error {
	if err := f.checkOut(); err != nil {
		return usage(err)
	}
	if f.out == "" {
		a.prepareCache("")
	}
	signals := make(chan os.Signal, 4)
	signal.Notify(signals, crew.StopSignals()...)
	defer signal.Stop(signals)
	show := &tuneScreen{out: a.stdout, err: a.stderr}
	if f.Transport == "inproc" {
		return a.inProcess(ctx, f.workers, f.HostOrder(), signals, func(ctx context.Context, g *collective.Group) error {
			return tuneRank(ctx, g, &f, sizes, false, crew.Quiet(show))
		})
	}
	place, err := f.Config(f.workers, a.stderr)
	if err != nil {
		return usage(err)
	}
	c := a.crew(place, f.workers, show, signals)
	c.Announce = f.First()
	return c.Launch(ctx)
}

// checkOut finds out before anything is measured whether the table can be
// saved, if it is known that it is saved on this machine.
func (f *tuneFlags) checkOut() error {
	if f.Nodes > 1 {
		return nil
	}
	dir := filepath.Dir(f.out)
	if f.out == "" {
		cache, err := data.OpenCache()
		if err != nil {
			return fmt.Errorf("there is no place for the table: %w: name a file with --out", err)
		}
		dir = cache.Dir
	} else if info, err := os.Stat(f.out); err == nil && !info.Mode().IsRegular() {
		return fmt.Errorf("--out %s is not a file: name one", f.out)
	}
	if err := prepareOut(dir); err != nil {
		return fmt.Errorf("there is no place for the table: %w: name a file with --out", err)
	}
	return nil
}

// tune is one rank in a process of its own.
func (w *worker) tune(f tuneFlags, sizes []int) error {
	err := w.measureWith(f.HostOrder(), f.JoinTimeout, func(ctx context.Context, g *collective.Group) error {
		return tuneRank(ctx, g, &f, sizes, w.Place.KeyFile != "", w.Events)
	})
	if err != nil && (w.Stop().Err() != nil || cancelled(err)) {
		w.Events.Emit(&event.Stopped{})
		return nil
	}
	return err
}

// measureWith joins, within timeout, and runs one rank's part of a measurement.
func (w *worker) measureWith(o collective.Order, timeout time.Duration, run func(context.Context, *collective.Group) error) error {
	w.Place.Group.Order = o
	node, err := w.Join(slog.LevelError)
	if err != nil {
		return err
	}
	defer node.Close()
	group, err := w.Form(timeout)
	if err != nil {
		return err
	}
	return run(w.Stop(), group)
}

// tuneRank is one rank's part, in whatever process it runs. Rank 0 tells, and
// saves.
func tuneRank(ctx context.Context, g *collective.Group, f *tuneFlags, sizes []int, secured bool, events event.Sink) error {
	var each func(bench.Tuned)
	if g.Rank() == 0 {
		each = func(t bench.Tuned) { events.Emit(&bench.SizeTuned{Tuned: t}) }
	}
	all, err := bench.Tune(ctx, g, sizes, each)
	if err == nil && g.Rank() == 0 {
		err = f.save(g, all, secured, events)
		if err != nil {
			g.Abort(err)
			return err
		}
	}
	err = cmp.Or(err, g.Barrier(ctx)) // nobody leaves before the others have heard its last message
	if err != nil && !cancelled(err) {
		crew.TellLost(events, g.Rank(), err)
	}
	return err
}

// save writes the table.
func (f *tuneFlags) save(g *collective.Group, all []bench.Tuned, secured bool, events event.Sink) error {
	here := tuned.Here(g, f.HostOrder(), secured)
	path := f.out
	if path == "" {
		cache, err := data.OpenCache()
		if err != nil {
			return fmt.Errorf("saving the table: %w: name a file with --out", err)
		}
		path = filepath.Join(cache.Dir, here.Name())
	}
	if err := atomicfile.WriteFile(path, tuned.Encode(here, bench.TableOf(g.Size(), all)), atomicfile.Options{}); err != nil {
		return fmt.Errorf("saving the table in %s: %w", path, err)
	}
	events.Emit(&bench.TableSaved{Path: path})
	return nil
}
