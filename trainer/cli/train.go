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
	"runtime"
	"slices"
	"sync"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/ringtrain/ringtrain/bench"
	"github.com/ringtrain/ringtrain/collective/cluster"
	"github.com/ringtrain/ringtrain/trainer"
	"github.com/ringtrain/ringtrain/trainer/catalog"
	"github.com/ringtrain/ringtrain/trainer/data"
	"github.com/ringtrain/ringtrain/trainer/job/crew"
)

func (a *app) trainCommand() *cobra.Command {
	var f trainFlags
	cmd := &cobra.Command{
		Use:   "train CONFIG [flags] [--section.key VALUE ...]",
		Short: "Train a model in several processes",
		Long: `Train the model that CONFIG describes, in several processes that find each other.

Without --nodes, all workers run on this machine. With --nodes M, give the same command on
each of M machines: with --bind ADDRESS on the first, with --join ADDRESS:PORT of the first
on the others. --workers counts the workers of one machine. With --key-file, all traffic is
encrypted, and only holders of the key can join.

A flag with a dot in its name replaces a value of the config, such as
--training.batch_size 64 or --optimizer.@optimizers SGD.v1. In the config's [ray] section,
num_workers is the default of --workers, num_cpus is how many cores the workers of this
machine share, and object_store_memory limits the bytes of data and batches that they keep
in memory together.

On GPUs (--device cuda, in a binary built with -tags gpu) NCCL sums the gradients, in an
order of its own that is the same on every rank; --order ring keeps ring order. A
checkpoint written on a GPU can be resumed on a CPU, and vice versa. eval and predict use
the CPU.

The first Ctrl-C, SIGTERM or SIGHUP lets all workers on all machines finish the step and,
with --out, writes a checkpoint for --resume. That may take as long as they make progress:
they are ended after 20 seconds without any. The second signal ends them at once.

` + exitCodes("failed", "wrong usage, config or data; nothing was started"),
		Example: `  ringtrain train examples/mnist.cfg --workers 4
  ringtrain train examples/mnist.cfg --out run1 --checkpoint-every 50
  ringtrain train examples/mnist.cfg --resume run1
  ringtrain train examples/mnist.cfg --nodes 2 --bind 10.0.0.1         # here
  ringtrain train examples/mnist.cfg --nodes 2 --join 10.0.0.1:7946    # there`,
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) != 1 {
				return usagef("train takes one CONFIG file, not %d; try examples/mnist.cfg", len(args))
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := a.identify(); err != nil {
				return err
			}
			if err := a.adopt(&f.placeFlags, &f.workers, "workers", cmd.Flags().Changed); err != nil {
				return usage(err)
			}
			if err := f.check(cmd.Flags().Changed); err != nil {
				return usage(err)
			}
			f.Given = cmd.Flags().Changed("order")
			f.out = cmp.Or(f.out, f.resume)
			return a.train(cmd.Context(), args[0], f)
		},
	}
	f.register(cmd)
	return cmd
}

// register adds the flags to those of the command.
func (f *trainFlags) register(cmd *cobra.Command) {
	under(cmd, jobFlags, func(flags *pflag.FlagSet) {
		flags.IntVar(&f.workers, "workers", 0, "start `N` workers on this machine (default ray.num_workers of the config, or 1)")
		flags.IntVar(&f.steps, "steps", 0, "train for `N` steps (default training.iterations of the config)")
		flags.IntVar(&f.batch, "batch", 0, "`ROWS` of each worker in one micro-batch (default training.batch_size of the config)")
		flags.IntVar(&f.accumulate, "accumulate", 1, "micro-batches of each worker in one step; 1 worker with `N` gives the same bits as N workers")
		flags.StringVar(&f.reduce, "reduce", "mean", "combine gradients by `HOW`: mean over all rows, or sum of the workers' means (steps then grow with the number of workers)")
		flags.StringVar(&f.strategy, "strategy", "allreduce", "how workers agree on the next weights; `NAME` can only be allreduce")
		flags.Uint64Var(&f.seed, "seed", 0, "seed `N` of initial weights, row order and dropout (default 0)")
	})
	under(cmd, dataFlags, func(flags *pflag.FlagSet) {
		flags.StringVar(&f.data, "data", "digits", dataUsage)
	})
	under(cmd, savingFlags, f.addSaving)
	f.placeFlags.register(cmd)
	f.orderFlags.register(cmd)
	under(cmd, networkFlags, f.addCompress)
	under(cmd, networkFlags, f.bucketFlags.add)
	f.deviceFlags.register(cmd, deviceAuto, "compute on `DEVICE`: cpu, cuda (worker k of a machine on GPU k), cuda:I (worker k on GPU I+k), or auto (cuda if there is a GPU for each worker, else cpu)")
	f.graphFlags.register(cmd)
	f.productFlags.register(cmd)
	under(cmd, outputFlags, func(flags *pflag.FlagSet) {
		flags.BoolVar(&f.json, "json", false, "write events to stdout, one JSON object per line, instead of the table")
		flags.StringVar(&f.trace, "trace", "", "write a Chrome trace of each rank (trace-RANK.json) to `DIR`; ui.perfetto.dev shows it")
		flags.StringVar(&f.metrics, "metrics", "", "serve Prometheus metrics of the first worker at `ADDRESS:PORT`, of the second at the next port, and so on")
		flags.StringVar(&f.logLevel, "log-level", "error", "log to stderr from `LEVEL` on: debug, info, warn or error")
		flags.BoolVar(&f.faithful, "faithful-accumulate", false, "never zero gradients: reproduces a bug of the notebook that examples/mnist.cfg comes from")
	})
}

// dataUsage is the usage of --data.
const dataUsage = "training and test rows: `SOURCE` is digits (generated once on this machine) or mnist:DIR (IDX files, plain or .gz)"

// addCompress adds --compress.
func (f *trainFlags) addCompress(flags *pflag.FlagSet) {
	flags.StringVar(&f.compress, "compress", "", "compress gradients before sending them, as `FORM`: none, bf16, fp16, int8, or topk:R, which keeps the share R, such as topk:0.01; what is lost is added to later gradients (default training.compress of the config, or none)")
}

// checkCompress finds what is wrong with --compress.
func (f *trainFlags) checkCompress(given func(string) bool) error {
	if !given("compress") {
		return nil
	}
	if _, err := trainer.ParseCompression(f.compress); err != nil {
		return fmt.Errorf("--compress: %w", err)
	}
	return nil
}

// check finds what is wrong with the flags alone.
func (f *trainFlags) check(given func(string) bool) error {
	switch {
	case given("workers") && f.workers < 1:
		return errors.New("--workers must be at least 1")
	case given("steps") && f.steps < 1:
		return errors.New("--steps must be at least 1")
	case given("batch") && f.batch < 1:
		return errors.New("--batch must be at least 1")
	case f.accumulate < 1:
		return errors.New("--accumulate must be at least 1")
	case f.reduce != "mean" && f.reduce != "sum":
		return errors.New("--reduce must be mean or sum, not " + f.reduce)
	case f.strategy != "allreduce":
		return errors.New("--strategy must be allreduce, not " + f.strategy)
	case new(slog.Level).UnmarshalText([]byte(f.logLevel)) != nil:
		return errors.New("--log-level must be debug, info, warn or error, not " + f.logLevel)
	}
	if err := f.checkCompress(given); err != nil {
		return err
	}
	if err := f.checkSaving(given); err != nil {
		return err
	}
	if err := f.Choice.Check(); err != nil {
		return err
	}
	if err := f.checkTaps(given); err != nil {
		return err
	}
	for _, wrong := range []error{f.bucketFlags.check(), f.deviceFlags.check(), f.graphFlags.check(), f.productFlags.check(given)} {
		if wrong != nil {
			return wrong
		}
	}
	return f.placeFlags.check(given)
}

// trainThreads are the threads of Go that a worker has at least: with one, the
// collector and the heartbeats would take turns with the step.
const trainThreads = 2

// train is the whole of "train", as launcher or as worker.
func (a *app) train(ctx context.Context, path string, f trainFlags) error {
	return a.run(ctx, func(ctx context.Context) error { return a.launchTraining(ctx, path, f) },
		func(ctx context.Context, w *worker) error { return w.train(ctx, path, f) })
}

// run runs this process's part of a job.
func (a *app) run(ctx context.Context, launch func(context.Context) error, work func(context.Context, *worker) error) error {
	return a.process.Run(ctx, crew.Part{Stdout: a.stdout, Stderr: a.stderr, Launch: launch, Work: func(ctx context.Context, w *crew.Worker) error {
		return work(ctx, &worker{w, a})
	}})
}

// launchTraining is the launcher's part.
func (a *app) launchTraining(ctx context.Context, path string, f trainFlags) error {
	alone := f.Nodes == 1 && a.process.Launched == nil // this process starts all workers
	if alone {
		f.Cluster = cmp.Or(f.Cluster, crew.OwnCluster())
	}
	s, err := a.settle(path, f)
	if err != nil {
		return err
	}
	if f.Transport != "inproc" {
		if _, err := crew.FindKey(f.KeyFile); err != nil { // before data are made
			return usage(err)
		}
	}
	for _, wrong := range []error{f.checkResumeDir(), f.CheckTable(s.allWorkers(), f.Nodes), f.checkMetrics(s.workers)} {
		if wrong != nil {
			return usage(wrong)
		}
	}
	release, err := f.takeDirs(alone)
	if err != nil {
		return usage(err)
	}
	defer release()
	if f.out != "" { // train | head -1 must not lose the weights
		defer outliveReaders()()
	}
	if err := prepareOut(f.trace); err != nil {
		return usage(fmt.Errorf("--trace %s: %w", f.trace, err))
	}
	signals := make(chan os.Signal, 4)
	signal.Notify(signals, crew.StopSignals()...)
	defer signal.Stop(signals)
	show := a.newScreen(s)
	defer show.close()
	if s.placement.onGPU() {
		a.prepareCache("") // which is for compiled kernels
	}
	set, err := a.openUnder(ctx, s.source, signals)
	if err != nil {
		return err
	}
	if err := a.checkResume(s, set); err != nil {
		return usage(err)
	}
	if f.Transport == "inproc" {
		err = a.trainInProcess(ctx, s, set, show, signals)
	} else {
		err = a.launchWorkers(ctx, s, show, signals)
	}
	show.close()
	return a.withHint(s, err)
}

// openUnder reads a dataset, and makes it first if it has to be made, unless a
// signal comes. The launcher does so before it starts workers, who then find
// it made and whole.
func (a *app) openUnder(ctx context.Context, source catalog.Source, signals <-chan os.Signal) (*data.Set, error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	forced := make(chan struct{})
	watch := crew.WatchSignals(signals, cancel, sync.OnceFunc(func() { close(forced) }))
	if source.Cache != "" {
		a.prepareCache(source.Cache)
	}
	var set *data.Set
	opened := make(chan error, 1)
	go func() {
		var err error
		set, err = source.Open(ctx)
		opened <- err
	}()
	var err error
	select {
	case err = <-opened:
	case <-forced: // what is being drawn or read is left to the end of the process
		return nil, &crew.EndError{Signal: watch.End()}
	}
	if sig := watch.End(); sig != nil {
		return nil, &crew.EndError{Signal: sig}
	}
	if err != nil {
		return nil, usage(err)
	}
	return set, nil
}

// launchWorkers starts the training of this machine's workers, shows what they say
// and waits for them.
func (a *app) launchWorkers(ctx context.Context, s *settings, show *screen, signals <-chan os.Signal) error {
	place, err := s.flags.Config(s.workers, a.stderr)
	if err != nil {
		return usage(err)
	}
	c := a.crew(place, s.workers, show, signals)
	c.Cores, c.Threads, c.Announce, c.Out, c.Verbatim = s.cores, trainThreads, true, absolute(s.flags.out), s.flags.json
	c.Environ = a.environ(place, s.placement)
	c.Stopping = "stopping after this step; once more to stop at once"
	return c.Launch(ctx)
}

// crew is workers of this command at a place.
func (a *app) crew(place cluster.Config, workers int, show crew.Display, signals <-chan os.Signal) crew.Crew {
	return crew.Crew{
		Workers: workers, Cores: runtime.NumCPU(), Place: place, Process: a.process, Args: slices.Concat(a.args, a.shape), Kinds: bench.Events(),
		Display: show, Signals: signals, Command: a.command(), Stopping: "stopping", Environ: a.environ(place, placement{}),
	}
}

// environ is what workers find in their environment besides their place.
func (a *app) environ(place cluster.Config, p placement) func(local int) []string {
	return func(local int) []string {
		return append(p.environ(place.Node, local, place.Nodes < 2), a.cacheEnviron()...)
	}
}

// absolute is a path as another program can use it; "" stays "".
func absolute(path string) string {
	if path == "" {
		return ""
	}
	full, err := filepath.Abs(path)
	if err != nil {
		return path
	}
	return full
}
