package cli

import (
	"context"
	"errors"
	"fmt"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/ringtrain/ringtrain/bench"
	"github.com/ringtrain/ringtrain/trainer/job/crew"
	"github.com/ringtrain/ringtrain/trainer/job/tuned"
)

// tuneFlags are the flags of "tune".
type tuneFlags struct {
	bench.TuneRun
	begin, end string
	factor     int
}

func tuneCommand(a *app) *cobra.Command {
	var f tuneFlags
	cmd := &cobra.Command{
		Use:   "tune [flags]",
		Short: "Find the fastest allreduce algorithm for each size",
		Long: `Measure allreduce over a range of sizes, with each algorithm that the ranks can use. Print
the fastest algorithm of each size with its predicted and measured time, and save the table.
From then on, train and bench collective use the table if ranks, hosts, transport, --streams,
CPU, program and --order are the same (see their flag --tune). Workers that share memory
also choose again, with more trial calls than when a job starts, how they move data there.

With --order ring, the default, only algorithms of ring order are tried, so the table changes
the speed of sums but never their bits. With --nodes M, start the same command on each of M
machines; the machine of rank 0 prints and saves the table.`,
		Example: `  ringtrain tune --workers 4
  ringtrain tune --workers 2 --transport tcp --order any -e 4M`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := a.identify(); err != nil {
				return err
			}
			if err := a.adopt(&f.Place, &f.Workers, "workers", cmd.Flags().Changed); err != nil {
				return usage(err)
			}
			if err := checkEmpty(cmd.Flags(), "out", "order"); err != nil {
				return usage(err)
			}
			if err := f.check(cmd.Flags()); err != nil {
				return usage(err)
			}
			return a.tune(cmd.Context(), f)
		},
	}
	under(cmd, measureFlags, func(flags *pflag.FlagSet) {
		flags.IntVar(&f.Workers, "workers", 2, "start `N` ranks on this machine")
		addSweep(flags, &f.begin, &f.end, &f.factor, "16M")
	})
	addPlace(cmd, &f.Place, "prints and saves the table")
	addOrderAlone(cmd, &f.Order)
	under(cmd, outputFlags, func(flags *pflag.FlagSet) {
		flags.StringVar(&f.Out, "out", "", "write the table to `FILE` (default a file in the user's cache directory, where train and bench collective look)")
	})
	return cmd
}

// check checks the flags by themselves and parses the sizes.
func (f *tuneFlags) check(flags *pflag.FlagSet) error {
	f.Order.Table = tuned.Off
	if f.Workers < 1 || f.Workers > mostRanks {
		return fmt.Errorf("--workers must be from 1 to %d, not %d", mostRanks, f.Workers)
	}
	if f.Workers*f.Place.Nodes < 2 {
		return errors.New("one rank has nothing to exchange: give --workers or --nodes")
	}
	begin, err := bench.ParseSize(f.begin)
	if err != nil {
		return fmt.Errorf("-b: %w", err)
	}
	end, err := bench.ParseSize(f.end)
	if err != nil {
		return fmt.Errorf("-e: %w", err)
	}
	if begin < 4 {
		return fmt.Errorf("-b must be at least 4, which is one element, not %d", begin)
	}
	if err := f.Order.Check(); err != nil {
		return err
	}
	if err := checkPlace(flags, &f.Place); err != nil {
		return err
	}
	if f.Sizes, err = bench.Sweep(begin, end, f.factor); err != nil {
		return err
	}
	return f.CheckMemory()
}

// tune runs "tune", as launcher or as worker.
func (a *app) tune(ctx context.Context, f tuneFlags) error {
	return a.process.Run(ctx, crew.Part{
		Stdout: a.stdout, Stderr: a.stderr,
		Work: func(_ context.Context, w *crew.Worker) error { return f.Work(w) },
		Launch: func(ctx context.Context) error {
			signals, done := stopSignals()
			defer done()
			return f.Launch(ctx, a.options(&tuneScreen{Lines: crew.Lines{To: a.stderr}, out: a.stdout}, signals))
		},
	})
}
