package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"os/signal"
	"sync"

	"github.com/spf13/cobra"

	"github.com/ringtrain/ringtrain/collective/cluster"
	"github.com/ringtrain/ringtrain/trainer"
	"github.com/ringtrain/ringtrain/trainer/catalog"
	"github.com/ringtrain/ringtrain/trainer/data"
)

func (a *app) trainCommand() *cobra.Command {
	var f trainFlags
	cmd := &cobra.Command{
		Use:   "train CONFIG [flags] [--section.key VALUE ...]",
		Short: "Train a model in several processes",
		Long: `Train the model that a config describes, in several processes that find each other.

Without --nodes, all workers are started on this machine. With --nodes M, give the
same command on each of M machines: on the first with --bind ADDR, on the others with
--join ADDR:PORT of the first. All their workers make one job; --workers counts those
of one machine. With --key-file, the file that keygen made, all they send is encrypted,
and nobody without the key can join.

An option with a dot in its name replaces a value of the config, as in
--training.batch_size 64 or --optimizer.@optimizers SGD.v1. The config's [ray] section
is read as follows: num_workers is the default of --workers; num_cpus is how many cores
the workers of this machine share; object_store_memory is the most bytes of data and
batches that they may keep in memory together.

With --device cuda the whole of a step is computed on NVIDIA GPUs, and gradients are added
up there by NCCL: in an order of its own, the same on every rank, unless --order ring is
given. A checkpoint that was written on a GPU can be resumed on the CPU, and the other way
round; eval and predict use the CPU. A binary for GPUs is built with -tags gpu.

Exit codes: 0 done, 1 failed, 2 wrong usage, config or data, 75 stopped by SIGTERM or SIGHUP,
130 stopped by Ctrl-C. The first signal lets all workers, on all machines, finish the
step, and writes a checkpoint with --out, from which --resume goes on; the second ends them
at once.`,
		Example: `  ringtrain train examples/mnist.cfg --workers 4
  ringtrain train examples/mnist.cfg --data mnist:DIR --out run1 --checkpoint-every 50
  ringtrain train examples/mnist.cfg --data mnist:DIR --resume run1`,
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) != 1 {
				return usagef("train takes one CONFIG file, not %d; try examples/mnist.cfg", len(args))
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := f.check(cmd.Flags().Changed); err != nil {
				return usage(err)
			}
			f.given = cmd.Flags().Changed("order")
			f.out = cmp.Or(f.out, f.resume)
			return a.train(cmd.Context(), args[0], f)
		},
	}
	flags := cmd.Flags()
	flags.IntVar(&f.workers, "workers", 0, "workers on this machine (default: ray.num_workers of the config, else 1)")
	flags.StringVar(&f.data, "data", "digits", "digits (made on this machine) or mnist:DIR (a directory with IDX files, plain or .gz)")
	flags.StringVar(&f.out, "out", "", "directory for the trained weights (model.safetensors), on each machine, and for checkpoints (step-*.safetensors), on the machine of rank 0")
	flags.StringVar(&f.resume, "resume", "", "directory of --out to go on from: its newest whole checkpoint; rank 0 reads it, other machines need no file (--out is the same unless it is given)")
	flags.IntVar(&f.every, "checkpoint-every", 0, "steps between checkpoints (default: one at the end, or at a signal)")
	flags.IntVar(&f.keep, "keep", 3, "checkpoints to keep, the newest; 0 for all")
	flags.BoolVar(&f.requireSave, "require-checkpoint", false, "end with exit code 1 when a checkpoint cannot be written, and not only say so")
	flags.IntVar(&f.batch, "batch", 0, "rows of one worker in one micro-batch (default: training.batch_size of the config)")
	flags.IntVar(&f.accumulate, "accumulate", 1, "micro-batches of one worker in one step; one worker with N makes the bits of N workers")
	flags.StringVar(&f.reduce, "reduce", "mean", "what gradients become: mean (over all rows) or sum (of the workers' means, so that steps grow with workers)")
	registerCompress(cmd, &f)
	flags.StringVar(&f.strategy, "strategy", "allreduce", "how workers agree on the next weights: allreduce")
	flags.Uint64Var(&f.seed, "seed", 0, "seed of initial weights, order of rows and dropout")
	flags.IntVar(&f.steps, "steps", 0, "steps to train (default: training.iterations of the config)")
	flags.BoolVar(&f.faithful, "faithful-accumulate", false, "never zero gradients, as the notebook that examples/mnist.cfg comes from: shows what the bug costs")
	f.placeFlags.register(cmd)
	f.orderFlags.register(cmd)
	f.deviceFlags.register(cmd, deviceAuto, "where workers compute: auto (GPUs if there is one for each worker, else the CPU), cpu, cuda (worker k of a machine takes GPU k) or cuda:I (worker k takes GPU I+k)")
	f.graphFlags.register(cmd)
	f.productFlags.register(cmd)
	flags.BoolVar(&f.json, "json", false, "write events to stdout, one JSON object a line")
	flags.StringVar(&f.trace, "trace", "", "directory for a Chrome trace of each rank (trace-RANK.json), which ui.perfetto.dev shows")
	flags.StringVar(&f.metrics, "metrics", "", "ADDRESS:PORT at which the first worker of this machine serves Prometheus metrics, the next one at the port after, and so on")
	flags.StringVar(&f.logLevel, "log-level", "error", "what workers log to stderr: debug, info, warn or error")
	return cmd
}

// registerCompress adds --compress to the flags of a command.
func registerCompress(cmd *cobra.Command, f *trainFlags) {
	cmd.Flags().StringVar(&f.compress, "compress", "", "what gradients become before workers send them: none, bf16, fp16, int8, or topk:R with the share R that is kept, as topk:0.01; what is lost is sent later (default: training.compress of the config, else none)")
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
	if err := f.orderFlags.check(); err != nil {
		return err
	}
	if err := f.checkTaps(given); err != nil {
		return err
	}
	for _, wrong := range []error{f.deviceFlags.check(), f.graphFlags.check(), f.productFlags.check(given)} {
		if wrong != nil {
			return wrong
		}
	}
	return f.placeFlags.check(given, f.transport == "inproc")
}

// checkSaving is check for the flags about checkpoints.
func (f *trainFlags) checkSaving(given func(string) bool) error {
	out := f.out != "" || f.resume != ""
	switch {
	case given("resume") && f.resume == "":
		return errors.New("--resume is empty: name the directory of an earlier --out")
	case given("out") && f.out == "":
		return errors.New("--out is empty: name a directory, or leave it out")
	case given("checkpoint-every") && f.every < 1:
		return errors.New("--checkpoint-every must be at least 1")
	case f.keep < 0:
		return errors.New("--keep must be at least 1, or 0 for all")
	case !out && (given("checkpoint-every") || given("keep") || f.requireSave):
		return errors.New("--checkpoint-every, --keep and --require-checkpoint need --out: say where checkpoints go")
	case f.resume != "" && f.faithful:
		return errors.New("--resume does not go with --faithful-accumulate, whose sum of gradients is in no checkpoint")
	}
	return nil
}

// train is the whole of "train", as launcher or as worker.
func (a *app) train(ctx context.Context, path string, f trainFlags) error {
	if ctx == nil {
		ctx = context.Background()
	}
	place, isWorker, err := cluster.FromEnv()
	if err != nil {
		return usage(err)
	}
	if isWorker {
		return a.work(ctx, path, f, place)
	}
	s, err := a.settle(path, f)
	if err != nil {
		return err
	}
	if f.transport != "inproc" {
		if _, err := findKey(f.keyFile); err != nil { // before data are made
			return usage(err)
		}
	}
	for _, wrong := range []error{f.checkDirs(), f.checkTable(s.allWorkers(), f.nodes), f.checkMetrics(s.workers)} {
		if wrong != nil {
			return usage(wrong)
		}
	}
	if err := prepareOut(f.out); err != nil {
		return usage(fmt.Errorf("--out %s: %w", f.out, err))
	}
	if err := prepareOut(f.trace); err != nil {
		return usage(fmt.Errorf("--trace %s: %w", f.trace, err))
	}
	signals := make(chan os.Signal, 4)
	signal.Notify(signals, endings()...)
	defer signal.Stop(signals)
	show := a.newScreen(s)
	defer show.close()
	set, err := openUnder(ctx, s.source, signals)
	if err != nil {
		return err
	}
	if err := a.checkResume(s, set); err != nil {
		return usage(err)
	}
	if f.transport == "inproc" {
		err = a.trainInProcess(ctx, s, set, show, signals)
	} else {
		err = a.launch(ctx, s, show, signals)
	}
	return a.withHint(s, err)
}

// openUnder reads a dataset, and makes it first if it has to be made, unless a
// signal comes. The launcher does so before it starts workers, who then find
// it made and whole.
func openUnder(ctx context.Context, source catalog.Source, signals <-chan os.Signal) (*data.Set, error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	forced := make(chan struct{})
	watch := watchSignals(signals, cancel, sync.OnceFunc(func() { close(forced) }))
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
		return nil, &codedError{code: watch.end()}
	}
	if code := watch.end(); code != exitOK {
		return nil, &codedError{code: code}
	}
	if err != nil {
		return nil, usage(err)
	}
	return set, nil
}

// prepareOut makes the directory for weights, so that a mistake shows before
// the training and not after it.
func prepareOut(dir string) error {
	if dir == "" {
		return nil
	}
	if err := os.MkdirAll(dir, 0o777); err != nil {
		return err
	}
	probe, err := os.CreateTemp(dir, ".ringtrain-*")
	if err != nil {
		return err
	}
	name := probe.Name()
	if err := probe.Close(); err != nil {
		return err
	}
	return os.Remove(name)
}
