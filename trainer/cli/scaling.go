package cli

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/ringtrain/ringtrain/bench"
	"github.com/ringtrain/ringtrain/collective/cluster"
	"github.com/ringtrain/ringtrain/trainer/catalog"
	"github.com/ringtrain/ringtrain/trainer/job"
	"github.com/ringtrain/ringtrain/trainer/job/crew"
)

// Bounds of "bench scaling".
const (
	mostScalingTrials = 1000
	mostEmulated      = time.Minute // that a step's compute may take
)

// scalingFlags are the flags of "bench scaling".
type scalingFlags struct{ bench.ScalingRun }

func scalingCommand(a *app) *cobra.Command {
	var f scalingFlags
	cmd := &cobra.Command{
		Use:   "scaling [flags]",
		Short: "Measure how training scales with the number of workers",
		Long: `Train with each number of workers in turn, several times, and print tables: the time of
all steps, its growth T(N)/T(1), the speedup T(1)/T(N) and the scalability N*T(1)/T(N); where
the time of a step goes; and how many bytes are sent. Each worker takes all steps, on
its own rows, so ideally the time stays the same.

Workers train as in "ringtrain train". Trials alternate between the numbers of workers, so
that a slow period of the machine affects all of them.

With --hosts netns (as root, on Linux) each worker has its own network namespace, so this
machine looks like several. Workers communicate by TCP over links whose rate is
--link. Traffic is encrypted unless --insecure is given, and is also counted at the links.

With --compute emulate:116.7ms workers wait instead of computing, as a host waits for its
GPU, and release gradients in the order of a backward pass. So a machine can run more
workers than it has cores. A row is marked core-bound if more than 85 % of the processors
were busy in the busiest quarter of the time.

` + exitCodes("failed", "wrong usage, config or data"),
		Example: `  ringtrain bench scaling --workers 1,2 --steps 200
  ringtrain bench scaling --hosts netns --link 1gbit \
      --compute emulate:116.7ms --steps 50 --out scaling`,
		Args: nothing,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := a.identify(); err != nil {
				return err
			}
			if err := a.unlaunched("bench scaling"); err != nil {
				return usage(err)
			}
			if err := checkEmpty(cmd.Flags(), "config", "key-file", "out"); err != nil {
				return usage(err)
			}
			if err := f.check(cmd.Flags()); err != nil {
				return usage(err)
			}
			return a.scaling(cmd.Context(), f)
		},
	}
	f.register(cmd, a.catalog)
	return cmd
}

// register adds the flags to the command.
func (f *scalingFlags) register(cmd *cobra.Command, c *catalog.Catalog) {
	under(cmd, measureFlags, func(flags *pflag.FlagSet) {
		flags.IntSliceVar(&f.Workers, "workers", []int{1, 2, 4, 8, 16}, "worker counts to measure, a `LIST` that includes 1")
		flags.IntVar(&f.Trials, "trials", 3, "train `N` times with each worker count")
		flags.IntVar(&f.Steps, "steps", 100, "train for `N` steps each time")
		flags.StringVar(&f.System, "system", bench.Systems()[0], "`NAMES` of the strategies to measure, separated by commas: "+strings.Join(bench.Systems(), ", "))
		flags.StringVar(&f.Compute.Flag, "compute", "real", "`HOW` to compute: real, or emulate:TIME, such as emulate:116.7ms, to wait that long in each step instead")
		flags.IntVar(&f.Compute.InnerSteps, "inner-steps", job.DefaultInnerSteps, "with local-sgd and diloco, workers train alone for `N` steps between exchanges")
		flags.BoolVar(&f.Evaluate, "evaluate", false, "evaluate as the config says, and include that in the time")
	})
	under(cmd, dataFlags, func(flags *pflag.FlagSet) {
		flags.StringVar(&f.Config, "config", "", "train the model that `FILE` describes, as for train (default 784-128-128-10 with dropout, Adam, 128 rows per worker)")
		addData(flags, c, &f.Data, &f.Options)
	})
	under(cmd, networkFlags, func(flags *pflag.FlagSet) {
		addHosts(flags, "worker", &f.Hosts, &f.Link)
		flags.StringVar(&f.Transport, "transport", cluster.TransportAuto, "exchange data by `KIND`: shm (shared memory), tcp, or auto (tcp with --hosts netns, else shm)")
		flags.StringVar(&f.KeyFile, "key-file", "", "encrypt all traffic with the key in `FILE`, made by ringtrain keygen (default $"+cluster.EnvKeyFile+", or a new key with --hosts netns)")
		flags.BoolVar(&f.Insecure, "insecure", false, "with --hosts netns, do not encrypt")
		addSparse(flags, &f.Sparse)
	})
	under(cmd, outputFlags, func(flags *pflag.FlagSet) {
		flags.BoolVar(&f.Published, "published", false, "also show figures of other programs, from the README of spacy_ray_collective (2021), in a separate table and in the plots")
		flags.StringVar(&f.Out, "out", "", "write table.md, scaling.json, scaling.csv and the plots runtime, speedup and scalability (.png and .svg) to `DIR`")
		flags.BoolVar(&f.Force, "force", false, "take over --out"+forceFrom)
	})
}

// check checks the flags by themselves and parses --compute.
func (f *scalingFlags) check(flags *pflag.FlagSet) (err error) {
	given := flags.Changed
	for _, n := range f.Workers {
		if n < 1 || n > mostRanks {
			return fmt.Errorf("--workers must be from 1 to %d each, not %d", mostRanks, n)
		}
	}
	switch {
	case f.Trials < 1 || f.Trials > mostScalingTrials:
		return fmt.Errorf("--trials must be from 1 to %d, not %d", mostScalingTrials, f.Trials)
	case f.Compute.InnerSteps < 1:
		return fmt.Errorf("--inner-steps must be at least 1, not %d", f.Compute.InnerSteps)
	case f.Insecure && given("key-file"):
		return errors.New("--insecure cannot be combined with --key-file")
	}
	if err := checkSparse(given, f.Sparse); err != nil {
		return err
	}
	if f.Compute.Took, err = f.emulated(); err != nil {
		return err
	}
	if err := f.Check(); err != nil {
		return err
	}
	if given("link") {
		if err := checkLink(f.Link); err != nil {
			return err
		}
	}
	if err := checkCalibration(); err != nil {
		return err
	}
	return checkData(flags, f.Options)
}

// emulated returns the emulated compute time per step, or 0 for real compute.
func (f *scalingFlags) emulated() (time.Duration, error) {
	kind, text, _ := strings.Cut(f.Compute.Flag, ":")
	if f.Compute.Flag == "real" {
		return 0, nil
	}
	if kind != "emulate" {
		return 0, fmt.Errorf("--compute must be real or emulate:TIME, not %q", f.Compute.Flag)
	}
	took, err := time.ParseDuration(text)
	if err != nil || took <= 0 || took > mostEmulated {
		return 0, fmt.Errorf("the time of --compute must be one such as 116.7ms, up to %v, not %q", mostEmulated, text)
	}
	return took, nil
}

// scaling runs "bench scaling", as launcher or as worker.
func (a *app) scaling(ctx context.Context, f scalingFlags) error {
	f.Catalog, f.Overrides, f.Process = a.catalog, a.overrides, a.process
	return a.process.Run(ctx, crew.Part{
		Stdout: a.stdout, Stderr: a.stderr,
		Work: func(ctx context.Context, w *crew.Worker) error { return f.Work(ctx, w) },
		Launch: func(ctx context.Context) error {
			signals, done := stopSignals()
			defer done()
			err := f.Launch(ctx, a.options(nil, signals), func(config, system string) []string {
				return append(slices.Clone(a.args), "--config", config, "--system", system)
			})
			var trial *bench.TrialError
			if errors.As(err, &trial) {
				return &codedError{codeOf(err), trial}
			}
			return err
		},
	})
}
