package cli

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"os/signal"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"syscall"

	"github.com/spf13/cobra"

	"github.com/ringtrain/ringtrain/bench"
	"github.com/ringtrain/ringtrain/collective"
	"github.com/ringtrain/ringtrain/collective/cluster"
)

// benchFlags are the flags of "bench collective". The letters are those of
// nccl-tests.
type benchFlags struct {
	ranks      int
	transport  string
	begin, end string
	factor     int
	iterations int
	warmup     int
	dtype      string
	reduction  string
	root       int
	check      int
	files      benchFiles
}

// mostRanks is more than one machine can serve well.
const mostRanks = 256

func (a *app) benchCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "bench",
		Short: "Measure what this machine can do",
		Args:  cobra.NoArgs,
		RunE:  func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	var f benchFlags
	ops := strings.Join(bench.Operations(), "|")
	run := &cobra.Command{
		Use:   "collective [" + ops + "] [flags]",
		Short: "Measure a collective operation over a range of sizes, and judge its results",
		Long: `Measure a collective operation (allreduce if none is named) between ranks on this
machine, over a range of sizes. Flags and table are those of nccl-tests; "go doc
github.com/ringtrain/ringtrain/bench" derives each column.

Times are medians over the iterations, of the slowest rank. Results are compared with the
right ones, which are known exactly: #wrong counts the elements that differ. Sizes are
bytes, or numbers with K, M or G (KiB, MiB, GiB).

Exit codes: 0 done, 1 failed or wrong results, 2 wrong usage, 75 stopped by SIGTERM, 130
stopped by Ctrl-C.`,
		Example: `  ringtrain bench collective --ranks 4
  ringtrain bench collective allgather --ranks 2 --transport inproc -b 1K -e 1M -f 2 --plot busbw.png`,
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) > 1 {
				return usagef("bench collective takes one operation, not %d", len(args))
			}
			s, err := f.spec(append(args, "allreduce")[0])
			if err != nil {
				return usage(err)
			}
			return a.bench(cmd.Context(), s, f)
		},
	}
	flags := run.Flags()
	flags.IntVar(&f.ranks, "ranks", 2, "how many ranks")
	flags.StringVar(&f.transport, "transport", "tcp", "tcp (a process for each rank) or inproc (goroutines of one process)")
	flags.StringVarP(&f.begin, "minbytes", "b", "4", "size to begin with")
	flags.StringVarP(&f.end, "maxbytes", "e", "64M", "size to end with")
	flags.IntVarP(&f.factor, "stepfactor", "f", 4, "each size by the one before")
	flags.IntVarP(&f.iterations, "iters", "n", 0, "iterations of each size; 0: as many as a quarter of a second holds, 5 at least")
	flags.IntVarP(&f.warmup, "warmup_iters", "w", 1, "iterations before those, not counted")
	flags.StringVarP(&f.dtype, "datatype", "d", "float", "type of the elements: float, double, int32, int64 or uint8")
	flags.StringVarP(&f.reduction, "op", "o", "sum", "reduction: sum, prod, min, max or avg")
	flags.IntVarP(&f.root, "root", "r", 0, "root of a broadcast")
	flags.IntVarP(&f.check, "check", "c", 1, "1 to compare every result with the right one, 0 not to")
	flags.StringVar(&f.files.json, "json", "", "file for the results as a JSON array")
	flags.StringVar(&f.files.csv, "csv", "", "file for the results as comma-separated values")
	flags.StringVar(&f.files.plot, "plot", "", "file for a plot of busbw over size: NAME.png or NAME.svg")
	cmd.AddCommand(run)
	return cmd
}

// spec checks the flags and is what they ask for.
func (f *benchFlags) spec(op string) (bench.Spec, error) {
	s := bench.Spec{Op: op, Root: f.root, Warmup: f.warmup, Iterations: f.iterations, Check: f.check == 1}
	switch {
	case f.ranks < 1 || f.ranks > mostRanks:
		return s, fmt.Errorf("--ranks must be from 1 to %d", mostRanks)
	case f.transport != "tcp" && f.transport != "inproc":
		return s, fmt.Errorf("--transport must be tcp or inproc, not %s", f.transport)
	case f.check != 0 && f.check != 1:
		return s, fmt.Errorf("-c must be 0 or 1, not %d", f.check)
	}
	begin, err := bench.ParseSize(f.begin)
	if err != nil {
		return s, fmt.Errorf("-b: %w", err)
	}
	end, err := bench.ParseSize(f.end)
	if err != nil {
		return s, fmt.Errorf("-e: %w", err)
	}
	if s.Sizes, err = bench.Sweep(begin, end, f.factor); err != nil {
		return s, err
	}
	if s.DType, err = bench.ParseType(f.dtype); err != nil {
		return s, fmt.Errorf("-d: %w", err)
	}
	if s.Reduction, err = bench.ParseReduction(f.reduction); err != nil {
		return s, fmt.Errorf("-o: %w", err)
	}
	if err := f.files.check(); err != nil {
		return s, err
	}
	return s, s.Validate(f.ranks)
}

// bench is the whole of "bench collective", as launcher or as worker.
func (a *app) bench(ctx context.Context, s bench.Spec, f benchFlags) error {
	if ctx == nil {
		ctx = context.Background()
	}
	place, isWorker, err := cluster.FromEnv()
	if err != nil {
		return usage(err)
	}
	if isWorker {
		return a.asWorker(ctx, place, func(_ context.Context, w *worker) error { return w.bench(s) })
	}
	signals := make(chan os.Signal, 4)
	signal.Notify(signals, os.Interrupt, syscall.SIGTERM)
	defer signal.Stop(signals)
	show := &benchScreen{out: a.stdout, err: a.stderr, spec: s, transport: f.transport}
	if f.transport == "inproc" {
		err = a.benchInProcess(ctx, s, f.ranks, show, signals)
	} else {
		err = a.launchCrew(ctx, crew{
			workers: f.ranks, cores: runtime.NumCPU(), stopping: "stopping",
			place: cluster.Config{Cluster: ownCluster(), Nodes: 1, Node: cluster.NodeName(), LocalSize: f.ranks},
		}, show, signals)
	}
	if err != nil {
		return err
	}
	rows := show.end()
	if err := f.files.write(bench.Records(rows, f.transport)); err != nil {
		return err
	}
	return allRight(rows)
}

// allRight is an error where results were not what they should be.
func allRight(rows []bench.Row) error {
	wrong := int64(0)
	for _, r := range rows {
		wrong += r.Wrong()
	}
	if wrong > 0 {
		return fmt.Errorf("%d elements of results were wrong: the numbers above mean nothing", wrong)
	}
	return nil
}

// bench is one rank in a process of its own. When one is asked to stop, all
// do, and the launcher hears of it.
func (w *worker) bench(s bench.Spec) error {
	err := w.measure(s)
	if err != nil && (w.stop.Err() != nil || cancelled(err)) {
		w.events.emit(&stoppedEvent{Event: "stopped"})
		return nil
	}
	return err
}

func (w *worker) measure(s bench.Spec) error {
	wait := newWaiter(w.app.stderr)
	defer wait.end()
	node, err := w.join(slog.LevelError, wait)
	if err != nil {
		return err
	}
	defer node.Close()
	group, err := node.Group(w.stop)
	if err != nil {
		return err
	}
	wait.end()
	return benchRank(w.stop, group, s, w.events)
}

// benchInProcess runs all ranks as goroutines of this process.
func (a *app) benchInProcess(ctx context.Context, s bench.Spec, ranks int, show emitter, signals <-chan os.Signal) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	watch := watchSignals(signals, func() {
		fmt.Fprintln(a.stderr, "stopping")
		cancel()
	}, func() {})
	views, transports := collective.Local(ranks)
	errs := make([]error, ranks)
	var all sync.WaitGroup
	for i := range ranks {
		all.Go(func() {
			g := collective.NewGroup(views[i], collective.OverTransport(views[i], transports[i]), collective.Options{})
			defer g.Close()
			errs[i] = benchRank(ctx, g, s, show)
		})
	}
	all.Wait()
	if code := watch.end(); code != exitOK {
		return &codedError{code: code}
	}
	for _, err := range errs {
		var told *collective.ReportedError
		if err != nil && !errors.As(err, &told) {
			return err // of the rank that failed; the others name it
		}
	}
	return errors.Join(errs...)
}

// benchRank is one rank's part, in whatever process it runs. Rank 0 tells.
func benchRank(ctx context.Context, g *collective.Group, s bench.Spec, events emitter) error {
	if g.Rank() == 0 {
		events.emit(newViewEvent(g.View()))
		s.Each = func(r bench.Row) { events.emit(&rowEvent{Event: "row", Row: r}) }
	}
	_, err := bench.Run(ctx, g, s)
	if err == nil {
		err = g.Barrier(ctx) // nobody leaves before the others have heard its last message
	}
	if err != nil && !cancelled(err) {
		tellLost(events, g.Rank(), err)
	}
	return err
}

// cancelled reports whether a call failed because a rank, this one or another,
// was asked to stop.
func cancelled(err error) bool {
	var lost *collective.RankError
	return errors.As(err, &lost) && lost.Phase == "cancelled"
}

// benchFiles are where results go besides the table; "" is nowhere.
type benchFiles struct{ json, csv, plot string }

// check finds what would keep the files from being written, before an hour of
// measurements is lost to it.
func (f benchFiles) check() error {
	if f.plot != "" {
		if _, err := bench.PlotFormat(f.plot); err != nil {
			return fmt.Errorf("--plot %w", err)
		}
	}
	for _, path := range []string{f.json, f.csv, f.plot} {
		if path == "" {
			continue
		}
		if info, err := os.Stat(filepath.Dir(path)); err != nil || !info.IsDir() {
			return fmt.Errorf("%s: its directory does not exist", path)
		}
		if info, err := os.Stat(path); err == nil && info.IsDir() {
			return fmt.Errorf("%s is a directory", path)
		}
	}
	return nil
}
