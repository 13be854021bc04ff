package cli

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/ringtrain/ringtrain/bench"
	"github.com/ringtrain/ringtrain/collective"
	"github.com/ringtrain/ringtrain/collective/schedule"
	"github.com/ringtrain/ringtrain/trainer/job/crew"
	"github.com/ringtrain/ringtrain/trainer/job/device"
	"github.com/ringtrain/ringtrain/trainer/launch"
)

// benchFlags are the flags of "bench collective". The letters are those of
// nccl-tests.
type benchFlags struct {
	bench.CollectiveRun
	begin, end string
	factor     int
	iterations int
	warmup     int
	dtype      string
	reduction  string
	root       int
	check      int
	segment    string
	files      benchFiles
	garbage    int
}

// mostRanks bounds --ranks, far above what one machine serves well.
const mostRanks = 256

func benchCommand(a *app) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "bench",
		Short: "Measure collective operations and scaling",
		Args:  cobra.NoArgs,
		RunE:  func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	var f benchFlags
	run := &cobra.Command{
		Use:   "collective [OPERATION] [flags]",
		Short: "Measure a collective operation over a range of sizes",
		Long: `Measure a collective operation over a range of sizes. OPERATION is one of
` + strings.Join(bench.Operations(), ", ") + ` (default allreduce). Flags and table are those of
nccl-tests; "go doc github.com/ringtrain/ringtrain/bench" defines each column.

Times are medians over the iterations, each the time of the slowest rank. Every result is
compared with the exact one, and #wrong counts the elements that differ.

By default all ranks are processes on this machine. With --nodes M, start the same command
on each of M machines, as with train. --ranks counts the ranks of one machine, and the
machine of rank 0, the one without --join, prints the table.

With --hosts netns (as root, on Linux) each rank has its own network namespace, so this
machine looks like several. Traffic is encrypted with a temporary key or the key of
--key-file, unless --insecure is given. With --link, each size is measured for at least a
second unless -n is given.

Ranks that share memory choose by trial calls how they move data; a line says what they
chose. Set RINGTRAIN_CALIBRATION to off to skip the trials, to refine to measure longer, or
to values such as chunk=64K,read-most=off to fix single choices.

With --device cuda the vectors are in GPU memory, and NCCL runs the operations that it
supports. With --nccl off or --order ring, vectors are copied through pinned host memory.
NCCL's own links between hosts are neither encrypted nor limited by --link.

` + exitCodes("failed, or results were wrong", "wrong usage"),
		Example: `  ringtrain bench collective --ranks 4
  ringtrain bench collective allgather -b 1K -e 1M -f 2 --plot busbw.png
  ringtrain bench collective --ranks 4 --hosts netns --link 1gbit -b 1M
  ringtrain bench collective --ranks 1 --nodes 2 --bind 10.0.0.1`,
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) > 1 {
				return usagef("bench collective takes one operation, not %d", len(args))
			}
			if err := a.identify(); err != nil {
				return err
			}
			if f.Hosts == "netns" {
				if err := a.unlaunched("bench collective --hosts netns"); err != nil {
					return usage(err)
				}
			}
			if err := a.adopt(&f.Place, &f.Ranks, "ranks", cmd.Flags().Changed); err != nil {
				return usage(err)
			}
			if err := f.checkPlace(cmd.Flags()); err != nil {
				return usage(err)
			}
			if err := checkEmpty(cmd.Flags(), "algorithm", "order", "device", "nccl", "json", "csv", "plot"); err != nil {
				return usage(err)
			}
			f.Order.Given = cmd.Flags().Changed("order")
			if cmd.Flags().Changed("segment") && f.Algorithm == "" {
				return usagef("--segment needs --algorithm: the plan chooses both")
			}
			if err := f.read(append(args, "allreduce")[0]); err != nil {
				return usage(err)
			}
			return a.bench(cmd.Context(), f)
		},
	}
	f.register(run)
	cmd.AddCommand(run, overridable(scalingCommand(a)))
	return cmd
}

// register adds the flags to the command.
func (f *benchFlags) register(cmd *cobra.Command) {
	under(cmd, measureFlags, func(flags *pflag.FlagSet) {
		flags.IntVar(&f.Ranks, "ranks", 2, "start `N` ranks on this machine")
		addSweep(flags, &f.begin, &f.end, &f.factor, "64M")
		flags.IntVarP(&f.iterations, "iters", "n", 0, "time `N` iterations of each size (default as many as fit in 0.25 s, from 5 to 20000)")
		flags.IntVarP(&f.warmup, "warmup_iters", "w", 1, "run `N` iterations first that do not count")
		flags.StringVarP(&f.dtype, "datatype", "d", "float", "element `TYPE`: float, double, half, bfloat16, int32, int64 or uint8")
		flags.StringVarP(&f.reduction, "op", "o", "sum", "reduction `OP`: sum, prod, min, max or avg")
		flags.IntVarP(&f.root, "root", "r", 0, "root `RANK` of a broadcast, reduce, gather or scatter (default 0)")
		flags.IntVarP(&f.check, "check", "c", 1, "whether every result is compared with the correct one, `0|1`")
		flags.StringVar(&f.Memory, "memory", bench.Heap, "vectors are in memory of this `KIND`: heap (ordinary Go memory) or shared (ranks of one host read and write it in place, see cluster.Node.Alloc)")
		flags.StringVar(&f.Algorithm, "algorithm", "", "use this allreduce `ALGORITHM` for all sizes: one-shot, bruck, collected, direct, ring, shared or, with --order any, halving-doubling, double-tree, hierarchical (default the plan's choice)")
		flags.StringVar(&f.segment, "segment", "256K", "with --algorithm, send messages of at most `SIZE`")
	})
	addPlace(cmd, &f.Place, "prints the table")
	addOrder(cmd, &f.Order)
	under(cmd, networkFlags, func(flags *pflag.FlagSet) { addHosts(flags, "rank", &f.Hosts, &f.Link) })
	addDevice(cmd, &f.Device, device.CPU, "vectors are on `DEVICE`: cpu (host memory), cuda (rank k of a machine on GPU k), cuda:I (rank k on GPU I+k), or auto (cuda if there is a GPU for each rank, else cpu)")
	under(cmd, outputFlags, func(flags *pflag.FlagSet) {
		flags.StringVar(&f.files.json, "json", "", "write the results to `FILE` as a JSON array")
		flags.StringVar(&f.files.csv, "csv", "", "write the results to `FILE` as comma-separated values")
		flags.StringVar(&f.files.plot, "plot", "", "plot busbw over size to `FILE`, a .png or .svg")
		flags.IntVar(&f.garbage, "garbage", 0, "allocate and drop `N` pieces of 64 KB per millisecond in each rank, to see what garbage collection costs (default 0)")
	})
}

// addSweep adds the flags for a range of sizes up to most.
func addSweep(flags *pflag.FlagSet, begin, end *string, factor *int, most string) {
	flags.StringVarP(begin, "minbytes", "b", "4", "smallest `SIZE`, in bytes or with K, M or G (powers of 1024)")
	flags.StringVarP(end, "maxbytes", "e", most, "largest `SIZE`")
	flags.IntVarP(factor, "stepfactor", "f", 4, "multiply the size by `N` from one row to the next")
}

// addHosts adds the flags for network namespaces, one for each rank or worker.
func addHosts(flags *pflag.FlagSet, each string, hosts, link *string) {
	flags.StringVar(hosts, "hosts", "local", "`KIND` of hosts: local (this machine as it is) or netns (each "+each+" in its own network namespace; needs root, Linux only)")
	flags.StringVar(link, "link", "", "with --hosts netns, limit the link of each "+each+" to `RATE` in each direction, such as 1gbit (default no limit)")
}

// limitedTime is the minimum time per size on limited links: a link that was idle carries
// more at first.
const limitedTime = time.Second

// checkPlace checks the flags that place the ranks.
func (f *benchFlags) checkPlace(flags *pflag.FlagSet) error {
	given := flags.Changed
	switch {
	case f.Ranks < 1 || f.Ranks > mostRanks:
		return fmt.Errorf("--ranks must be from 1 to %d, not %d", mostRanks, f.Ranks)
	case f.Hosts != "local" && f.Hosts != "netns":
		return fmt.Errorf("--hosts must be local or netns, not %q", f.Hosts)
	case f.Hosts != "netns" && given("link"):
		return errors.New("--link needs --hosts netns: only there can the links be limited")
	case f.Hosts == "netns" && f.Place.Transport == crew.TransportInProcess:
		return errors.New("--transport inproc cannot be combined with --hosts netns: inproc is one process")
	case f.Hosts == "netns" && (f.Place.Nodes > 1 || len(f.Place.Join) > 0 || given("bind")):
		return errors.New("--hosts netns cannot be combined with --nodes, --join or --bind: it makes this machine look like several")
	case f.Hosts == "netns" && f.Ranks > launch.MaxNodes:
		return fmt.Errorf("--hosts netns has room for %d ranks, not %d", launch.MaxNodes, f.Ranks)
	}
	if given("link") {
		if err := checkLink(f.Link); err != nil {
			return err
		}
	}
	return checkPlace(flags, &f.Place)
}

// checkLink checks --link.
func checkLink(link string) error {
	rate, err := launch.ParseRate(link)
	if err == nil && (rate < launch.MinLink || rate > launch.MaxLink) {
		err = fmt.Errorf("rate must be from 10kbit to 1tbit, not %q", link)
	}
	if err != nil {
		return fmt.Errorf("--link: %w", err)
	}
	return nil
}

// read checks the flags and returns the run that they describe.
func (f *benchFlags) read(op string) (err error) {
	s := bench.Spec{Op: op, Root: f.root, Warmup: f.warmup, Iterations: f.iterations, Check: f.check == 1, Garbage: f.garbage,
		Way: strings.TrimSpace(f.Order.Order + " " + f.Algorithm + " " + f.segment + " " + f.Memory)}
	if f.check != 0 && f.check != 1 {
		return fmt.Errorf("-c must be 0 or 1, not %d", f.check)
	}
	if f.Memory != bench.Heap && f.Memory != bench.Shared {
		return fmt.Errorf("--memory must be %s or %s, not %q", bench.Heap, bench.Shared, f.Memory)
	}
	if f.Memory == bench.Shared && f.Place.Transport == crew.TransportInProcess {
		return errors.New("--memory shared is for ranks that are processes, not for --transport inproc")
	}
	if f.Link != "" {
		s.Time = limitedTime
	}
	begin, err := bench.ParseSize(f.begin)
	if err != nil {
		return fmt.Errorf("-b: %w", err)
	}
	end, err := bench.ParseSize(f.end)
	if err != nil {
		return fmt.Errorf("-e: %w", err)
	}
	if s.Sizes, err = bench.Sweep(begin, end, f.factor); err != nil {
		return err
	}
	if s.DType, err = bench.ParseType(f.dtype); err != nil {
		return fmt.Errorf("-d: %w", err)
	}
	if s.Reduction, err = bench.ParseReduction(f.reduction); err != nil {
		return fmt.Errorf("-o: %w", err)
	}
	if err := f.files.check(); err != nil {
		return err
	}
	if err := f.checkAlgorithm(op); err != nil {
		return err
	}
	f.Spec = s
	if err := f.CheckDevice(); err != nil {
		return err
	}
	if err := f.Spec.Validate(f.Ranks * f.Place.Nodes); err != nil {
		return err
	}
	if err := f.Order.CheckTable(f.Ranks*f.Place.Nodes, f.Place.Nodes); err != nil {
		return err
	}
	return f.CheckMemory()
}

// checkAlgorithm checks the flags that choose an algorithm.
func (f *benchFlags) checkAlgorithm(op string) error {
	if err := f.Order.Check(); err != nil || f.Algorithm == "" {
		return err
	}
	var err error
	if f.Segment, err = bench.ParseSize(f.segment); err != nil {
		return fmt.Errorf("--segment: %w", err)
	}
	m, err := schedule.ParseMethod(f.Algorithm)
	switch {
	case err != nil:
		return fmt.Errorf("--algorithm: %w", err)
	case op != "allreduce":
		return fmt.Errorf("--algorithm chooses how an allreduce is done, not %s", op)
	case !m.RingOrdered() && f.Order.HostOrder() == collective.RingOrder:
		return fmt.Errorf("--algorithm %v folds in another order than ring order: give --order any, too", m)
	}
	return nil
}

// benchFiles are the files that results are written to; "" for none.
type benchFiles struct{ json, csv, plot string }

// check checks that the files can be written, before an hour of measurements is lost.
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
		if err := checkWritable(path); err != nil {
			return err
		}
	}
	return nil
}

// checkWritable opens a file for writing, and leaves it as it was. It does not open pipes
// and the like: their readers would take the end of the check for the end of the results.
// The launcher and workers may check one file at the same time.
func checkWritable(path string) error {
	info, missing := os.Stat(path)
	flag := os.O_WRONLY
	switch {
	case missing != nil:
		flag |= os.O_CREATE | os.O_EXCL
	case info.IsDir():
		return fmt.Errorf("%s is a directory", path)
	case !info.Mode().IsRegular():
		return nil
	}
	file, err := os.OpenFile(path, flag, 0o666)
	switch {
	case errors.Is(err, fs.ErrExist) || errors.Is(err, fs.ErrNotExist): // another process has made or removed it meanwhile
		return nil
	case err != nil:
		return fmt.Errorf("cannot write the results: %w", err)
	}
	err = file.Close()
	if missing != nil {
		_ = os.Remove(path) // if this fails, the results replace it
	}
	return err
}

// bench runs "bench collective", as launcher or as worker.
func (a *app) bench(ctx context.Context, f benchFlags) error {
	return a.process.Run(ctx, crew.Part{
		Stdout: a.stdout, Stderr: a.stderr,
		Work:   func(_ context.Context, w *crew.Worker) error { return f.Work(w) },
		Launch: func(ctx context.Context) error { return a.launchBench(ctx, f) },
	})
}

// launchBench runs the launcher's part.
func (a *app) launchBench(ctx context.Context, f benchFlags) error {
	signals, done := stopSignals()
	defer done()
	show := &benchScreen{Lines: crew.Lines{To: a.stderr}, out: a.stdout, spec: f.Spec, transport: f.Transport(), away: a.process.Follows()}
	f.Placed = func(node, about string) { show.node, show.about = node, about }
	if err := f.Launch(ctx, a.options(show, signals)); err != nil {
		return err
	}
	rows := show.end()
	if a.process.Follows() {
		return nil // the process of rank 0 has them
	}
	if err := f.files.write(bench.Records(rows, show.transport)); err != nil {
		return err
	}
	return allRight(rows)
}

// allRight returns an error if any result was wrong.
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
