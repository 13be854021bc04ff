package cli

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/ringtrain/ringtrain/trainer/catalog"
	"github.com/ringtrain/ringtrain/trainer/job"
	"github.com/ringtrain/ringtrain/trainer/job/crew"
	"github.com/ringtrain/ringtrain/trainer/job/device"
)

// trainFlags are the flags of "train".
type trainFlags struct {
	job.Spec
	json  bool
	style string
}

func trainCommand(a *app) *cobra.Command {
	var f trainFlags
	cmd := &cobra.Command{
		Use:   "train CONFIG [flags] [--section.key VALUE ...]",
		Short: "Train a model in several processes",
		Long: `Train the model that CONFIG describes, in several processes that find each other.

Without --nodes, all workers run on this machine. With --nodes M, start the same command on
each of M machines: add --bind ADDRESS on the first, and --join with the ADDRESS:PORT of the
first on the others. --workers counts the workers of one machine. With --key-file, all traffic is
encrypted, and only holders of the key can join.

A flag with a dot in its name replaces a value of the config, such as
--training.batch_size 64 or --optimizer.@optimizers SGD.v1. In the config's [ray] section,
num_workers is the default of --workers, num_cpus is the number of cores that the workers
of this machine share, and object_store_memory limits the bytes of data and batches that
they keep in memory together.

On GPUs (--device cuda, in a binary built with -tags gpu) NCCL sums the gradients, in its
own order, which is the same on every rank; --order ring keeps ring order. A checkpoint
written on a GPU can be resumed on a CPU, and vice versa. eval and predict use the CPU.

After the first Ctrl-C, SIGTERM or SIGHUP, all workers on all machines finish the step and,
with --out, write a checkpoint for --resume. Workers may take as long as they need, but are
killed after 20 seconds without progress. A second signal ends them at once.

` + exitCodes("failed", "wrong usage, config or data; nothing was started"),
		Example: `  ringtrain train examples/mnist.cfg --workers 4
  ringtrain train examples/mnist.cfg --out run1 --checkpoint-every 50
  ringtrain train examples/mnist.cfg --resume run1
  ringtrain train examples/mnist.cfg --nodes 2 --bind 10.0.0.1         # here
  ringtrain train examples/mnist.cfg --nodes 2 --join 10.0.0.1:7946    # there`,
		Args: oneConfig,
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := a.identify(); err != nil {
				return err
			}
			given := cmd.Flags().Changed
			if err := a.adopt(&f.Place, &f.Workers, "workers", given); err != nil {
				return usage(err)
			}
			if err := f.check(cmd.Flags()); err != nil {
				return usage(err)
			}
			f.Order.Given = given("order")
			f.Catalog, f.Config, f.Overrides = a.catalog, args[0], a.overrides
			return a.train(cmd.Context(), f)
		},
	}
	f.register(cmd, a.catalog)
	return cmd
}

// register adds the flags to the command.
func (f *trainFlags) register(cmd *cobra.Command, c *catalog.Catalog) {
	under(cmd, jobFlags, func(flags *pflag.FlagSet) {
		flags.IntVar(&f.Workers, "workers", 0, "start `N` workers on this machine (default ray.num_workers of the config, or 1)")
		flags.IntVar(&f.Steps, "steps", 0, "train for `N` steps (default training.iterations of the config)")
		flags.StringVar(&f.Until, "until", "", targetUsage)
		flags.IntVar(&f.Batch, "batch", 0, "`ROWS` of each worker in one micro-batch (default training.batch_size of the config)")
		flags.IntVar(&f.Accumulate, "accumulate", 1, "micro-batches of each worker in one step; 1 worker with `N` gives the same bits as N workers")
		flags.StringVar(&f.Gradients.Reduce, "reduce", "mean", "combine gradients by `HOW`: mean over all rows, sum of the workers' means (steps are then larger with more workers), or total of all rows")
		addStrategy(flags, &f.Spec)
		addServers(flags, &f.Gradients)
		flags.StringVar(&f.Gradients.Switch, "switch", "", "change the strategy by `PLAN`: STEP:NAME,..., such as 100:allreduce,200:ps-sync after 100 and 200 steps (ringtrain strategy changes it on request)")
		addOuter(flags, &f.Gradients.Rounds)
		flags.Uint64Var(&f.Seed, "seed", 0, "seed `N` of initial weights, row order and dropout (default 0)")
	})
	under(cmd, dataFlags, func(flags *pflag.FlagSet) { addData(flags, c, &f.Data, &f.Options) })
	under(cmd, savingFlags, func(flags *pflag.FlagSet) { addSaving(flags, &f.Saving) })
	addPlace(cmd, &f.Place, "prints tables and keeps checkpoints")
	addOrder(cmd, &f.Order)
	under(cmd, networkFlags, func(flags *pflag.FlagSet) { addCompress(flags, &f.Gradients.Compress) })
	under(cmd, networkFlags, func(flags *pflag.FlagSet) { addSparse(flags, &f.Gradients.Sparse) })
	under(cmd, networkFlags, func(flags *pflag.FlagSet) {
		flags.Var(size{&f.Gradients.Bucket}, "bucket", "send gradients in buckets of at least `SIZE`, in bytes or with K, M or G, each as soon as the backward pass has completed it; a large value sends all at once (default between machines: what suits their links; on one machine and on GPUs: 1M)")
	})
	addDevice(cmd, &f.Device, device.Auto, "compute on `DEVICE`: cpu, cuda (worker k of a machine on GPU k), cuda:I (worker k on GPU I+k), or auto (cuda if there is a GPU for each worker, else cpu)")
	addGraphs(cmd, &f.Graphs)
	addProducts(cmd, &f.Products)
	under(cmd, outputFlags, func(flags *pflag.FlagSet) {
		flags.BoolVar(&f.json, "json", false, "write events to stdout, one JSON object per line, instead of the table")
		flags.StringVar(&f.style, "log-style", "table", "show evaluations in this `STYLE`: table, thinc or ray (the lines of the notebooks), or spacy (spaCy's table)")
		flags.StringVar(&f.Watch.Trace, "trace", "", "write a Chrome trace of each rank (trace-RANK.json) to `DIR`; ui.perfetto.dev shows it")
		flags.StringVar(&f.Watch.Metrics, "metrics", "", "serve Prometheus metrics of the first worker at `ADDRESS:PORT`, of the second at the next port, and so on")
		flags.StringVar(&f.Watch.LogLevel, "log-level", "error", "log messages of at least this `LEVEL` to stderr: debug, info, warn or error")
		flags.BoolVar(&f.Gradients.Faithful, "faithful-accumulate", false, "never zero gradients: reproduces a bug of the notebook that examples/mnist.cfg comes from")
	})
}

// addCompress adds --compress.
func addCompress(flags *pflag.FlagSet, form *string) {
	flags.StringVar(form, "compress", "", "compress gradients before sending them, as `FORM`: none, bf16, fp16, int8, or topk:R, which sends the fraction R with the largest magnitudes, such as topk:0.01; what is lost is added to later gradients (default training.compress of the config, or none)")
}

// addSparse adds --sparse.
func addSparse(flags *pflag.FlagSet, form *string) {
	flags.StringVar(form, "sparse", "", "send only the rows of embedding tables that have gradients: `WHEN` is auto (in steps in which that is fewer bytes), on or off; the bits of the result do not change (default training.sparse of the config, or auto)")
}

// checkSparse checks --sparse.
func checkSparse(given func(string) bool, form string) error {
	if !given("sparse") {
		return nil
	}
	return job.CheckSparse(form)
}

// checkCompress checks --compress.
func checkCompress(given func(string) bool, form string) error {
	if !given("compress") {
		return nil
	}
	return job.CheckCompress(form)
}

// check checks the flags by themselves.
func (f *trainFlags) check(flags *pflag.FlagSet) error {
	given := flags.Changed
	for _, n := range []struct {
		flag  string
		value int
	}{{"workers", f.Workers}, {"steps", f.Steps}, {"batch", f.Batch}, {"inner-steps", f.Gradients.Rounds.Steps}} {
		if given(n.flag) && n.value < 1 {
			return fmt.Errorf("--%s must be at least 1, not %d", n.flag, n.value)
		}
	}
	if err := checkRounds(flags, f.Strategy); err != nil {
		return err
	}
	if err := checkEmpty(flags, "server-dir", "servers", "trace", "until", "switch", "order", "device", "nccl", "time-products"); err != nil {
		return err
	}
	if err := checkAsynchrony(given, f.Gradients.Asynchrony); err != nil {
		return err
	}
	if err := checkCompress(given, f.Gradients.Compress); err != nil {
		return err
	}
	if err := checkSparse(given, f.Gradients.Sparse); err != nil {
		return err
	}
	if err := checkSaving(flags, &f.Saving); err != nil {
		return err
	}
	if err := checkData(flags, f.Options); err != nil {
		return err
	}
	if given("metrics") && f.Watch.Metrics == "" {
		return job.CheckMetrics("")
	}
	if given("bucket") && f.Gradients.Bucket == 0 {
		return job.CheckBucket(0)
	}
	style, ok := logStyles[f.style]
	switch {
	case !ok:
		return fmt.Errorf("--log-style must be %s, not %q", logStyleNames(), f.style)
	case style != nil && f.json:
		return fmt.Errorf("--log-style %s cannot be combined with --json", f.style)
	}
	f.Watch.First = style != nil
	if err := f.Spec.Check(); err != nil {
		return err
	}
	return checkPlace(flags, &f.Place)
}

// train runs "train", as launcher or as worker.
func (a *app) train(ctx context.Context, f trainFlags) error {
	return a.process.Run(ctx, crew.Part{
		Stdout: a.stdout, Stderr: a.stderr,
		Work: func(ctx context.Context, w *crew.Worker) error { return job.Work(ctx, w, f.Spec, a.stderr) },
		Launch: func(ctx context.Context) error {
			t, err := f.Settle()
			if err != nil {
				return err
			}
			if t.Spec.Saving.Dir != "" { // train | head -1 must not lose the weights
				defer outliveReaders()()
			}
			signals, done := stopSignals()
			defer done()
			show := a.newScreen(t.Spec.Updates(t.Steps, t.AllWorkers()), f.json)
			show.style = styleFor(f.style, t)
			defer show.close()
			o := a.options(show, signals)
			o.Verbatim = f.json
			err = t.Launch(ctx, o)
			show.close()
			return a.withHint(t, err)
		},
	})
}

// options returns the job options of this command.
func (a *app) options(show crew.Display, signals <-chan os.Signal) job.Options {
	return job.Options{Display: show, Signals: signals, Stdout: a.stdout, Stderr: a.stderr, Cache: a.cache(), Args: slices.Concat(a.args, a.shape), Command: a.command()}
}

// withHint adds to an error how to resume from the last checkpoint.
func (a *app) withHint(t *job.Training, err error) error {
	var end *crew.EndError
	if !errors.As(err, &end) || end.Usage && end.Signal == nil || !end.Begun {
		return err
	}
	code := exitCode(end)
	if t.Spec.Saving.Dir == "" {
		if code != exitFailed { // who stopped it knows what is lost
			return err
		}
		a.exit(err)
		fmt.Fprintln(a.stderr, "ringtrain: there is no checkpoint to resume from; --out DIR --checkpoint-every STEPS writes checkpoints, --resume DIR resumes from them")
		return &codedError{code: code}
	}
	a.exit(err)
	step, dir := job.Newest(t.Spec.Saving.Dir, t.Spec.Saving.Fallback)
	switch {
	case step >= 0 && dir != t.Spec.Saving.Dir: // --resume may have set --out
		fmt.Fprintf(a.stderr, "ringtrain: to resume from step %d, repeat the command with --out %s --resume %s\n", step, t.Spec.Saving.Dir, dir)
	case step >= 0:
		fmt.Fprintf(a.stderr, "ringtrain: to resume from step %d, repeat the command with --resume %s\n", step, dir)
	case t.Spec.Place.Nodes == 1:
		advice := ""
		if t.Spec.Saving.Every == 0 {
			advice = "; --checkpoint-every STEPS writes checkpoints"
		}
		fmt.Fprintf(a.stderr, "ringtrain: there is no checkpoint in %s to resume from%s\n", t.Spec.Saving.Dir, advice)
	}
	return &codedError{code: code}
}
