package cli

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/ringtrain/ringtrain/bench"
	"github.com/ringtrain/ringtrain/collective"
	"github.com/ringtrain/ringtrain/collective/schedule"
	"github.com/ringtrain/ringtrain/trainer/launch"
)

// benchFlags are the flags of "bench collective". The letters are those of
// nccl-tests.
type benchFlags struct {
	ranks      int
	begin, end string
	factor     int
	iterations int
	warmup     int
	dtype      string
	reduction  string
	root       int
	check      int
	hosts      string
	link       string
	files      benchFiles
	memory     string
	garbage    int
	algorithm  string // "": as planned
	orderFlags
	placeFlags
	deviceFlags
	placement placement // of the ranks of this machine
}

// What --memory takes.
const (
	memoryHeap   = "heap"
	memoryShared = "shared"
)

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
		Long: `Measure a collective operation (allreduce if none is named) between ranks, over a range
of sizes. Flags and table are those of nccl-tests; "go doc
github.com/ringtrain/ringtrain/bench" derives each column.

Times are medians over the iterations, of the slowest rank. Results are compared with the
right ones, which are known exactly: #wrong counts the elements that differ. Sizes are
bytes, or numbers with K, M or G (KiB, MiB, GiB).

All ranks are processes of this machine unless something else is said. With --nodes M,
give the same command on each of M machines, as with train; --ranks counts the ranks of
one, and the table is printed on the machine that has rank 0. With --hosts netns (as root,
on Linux) every rank has a network namespace of its own, so that this machine looks like
several, whose links carry what --link says; their traffic is encrypted with a key made for
the occasion, with that of --key-file, or with --insecure not at all. With --link, each
size is measured for a second at least unless -n says how often.

With --device cuda the vectors lie in the memory of GPUs, and NCCL does what it can; with
--nccl off, or --order ring, copies of them go through pinned memory of the host. NCCL's
links between hosts are neither encrypted nor limited by us.

Exit codes: 0 done, 1 failed or wrong results, 2 wrong usage, 75 stopped by SIGTERM
or SIGHUP, 130 stopped by Ctrl-C.`,
		Example: `  ringtrain bench collective --ranks 4
  ringtrain bench collective allgather --ranks 2 --transport inproc -b 1K -e 1M -f 2 --plot busbw.png
  ringtrain bench collective --ranks 4 --hosts netns --link 1gbit -b 1M
  ringtrain bench collective --ranks 1 --nodes 2 --bind 10.0.0.1 --key-file job.key`,
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) > 1 {
				return usagef("bench collective takes one operation, not %d", len(args))
			}
			if err := f.checkPlace(cmd.Flags().Changed); err != nil {
				return usage(err)
			}
			f.given = cmd.Flags().Changed("order")
			s, err := f.spec(append(args, "allreduce")[0])
			if err != nil {
				return usage(err)
			}
			return a.bench(cmd.Context(), s, f)
		},
	}
	f.register(run)
	cmd.AddCommand(run, a.scalingCommand())
	return cmd
}

// register adds the flags to those of the command.
func (f *benchFlags) register(cmd *cobra.Command) {
	f.placeFlags.register(cmd)
	f.orderFlags.register(cmd)
	f.deviceFlags.register(cmd, deviceCPU, "where the vectors lie: cpu (memory of the host), cuda (rank k of a machine takes GPU k), cuda:I (rank k takes GPU I+k) or auto")
	flags := cmd.Flags()
	flags.IntVar(&f.ranks, "ranks", 2, "how many ranks, on this machine")
	flags.StringVar(&f.hosts, "hosts", "local", "local (this machine as it is) or netns (a network namespace for each rank)")
	flags.StringVar(&f.link, "link", "", "with --hosts netns, what each rank's link carries in each direction, such as 1gbit (default: no limit)")
	flags.StringVarP(&f.begin, "minbytes", "b", "4", "size to begin with")
	flags.StringVarP(&f.end, "maxbytes", "e", "64M", "size to end with")
	flags.IntVarP(&f.factor, "stepfactor", "f", 4, "each size by the one before")
	flags.IntVarP(&f.iterations, "iters", "n", 0, "iterations of each size; 0: as many as a quarter of a second holds, 5 at least")
	flags.IntVarP(&f.warmup, "warmup_iters", "w", 1, "iterations before those, not counted")
	flags.StringVarP(&f.dtype, "datatype", "d", "float", "type of the elements: float, double, half, bfloat16, int32, int64 or uint8")
	flags.StringVarP(&f.reduction, "op", "o", "sum", "reduction: sum, prod, min, max or avg")
	flags.IntVarP(&f.root, "root", "r", 0, "root of a broadcast")
	flags.IntVarP(&f.check, "check", "c", 1, "1 to compare every result with the right one, 0 not to")
	flags.StringVar(&f.memory, "memory", memoryHeap, "memory that calls work on: heap (ordinary memory of Go) or shared (which the other ranks of this host read and write in place, see cluster.Node.Alloc)")
	flags.IntVar(&f.garbage, "garbage", 0, "pieces of 64 KB that a goroutine of each rank allocates and drops every millisecond, to see what the collector does to the times")
	flags.StringVar(&f.algorithm, "algorithm", "", "algorithm of an allreduce, for all sizes: one-shot, bruck, collected, direct, ring, shared or, with --order any, halving-doubling, double-tree or hierarchical (default: as planned)")
	flags.StringVar(&f.files.json, "json", "", "file for the results as a JSON array")
	flags.StringVar(&f.files.csv, "csv", "", "file for the results as comma-separated values")
	flags.StringVar(&f.files.plot, "plot", "", "file for a plot of busbw over size: NAME.png or NAME.svg")
}

// limitedTime is how long a size is measured at least where links are slow: a
// link that was idle carries more at first.
const limitedTime = time.Second

// checkPlace finds what is wrong with the flags that say where the ranks are.
func (f *benchFlags) checkPlace(given func(string) bool) error {
	switch {
	case f.ranks < 1 || f.ranks > mostRanks:
		return fmt.Errorf("--ranks must be from 1 to %d", mostRanks)
	case f.hosts != "local" && f.hosts != "netns":
		return fmt.Errorf("--hosts must be local or netns, not %s", f.hosts)
	case f.hosts != "netns" && given("link"):
		return errors.New("--link needs --hosts netns: only there can the links be limited")
	case f.hosts == "netns" && f.transport == "inproc":
		return errors.New("--transport inproc is one process: it does not go with --hosts netns")
	case f.hosts == "netns" && (f.nodes > 1 || len(f.join) > 0 || given("bind")):
		return errors.New("--hosts netns makes several machines of this one: it goes with neither --nodes, --join nor --bind")
	case f.hosts == "netns" && f.ranks > launch.MaxNodes:
		return fmt.Errorf("--hosts netns has room for %d ranks, not %d", launch.MaxNodes, f.ranks)
	}
	if given("link") {
		if err := checkLink(f.link); err != nil {
			return err
		}
	}
	return f.placeFlags.check(given, f.transport == "inproc")
}

// checkLink finds what is wrong with a --link that was given.
func checkLink(link string) error {
	rate, err := launch.ParseRate(link)
	if err == nil && (rate < launch.MinLink || rate > launch.MaxLink) {
		err = errors.New("a link carries from 10kbit to 1tbit")
	}
	if err != nil {
		return fmt.Errorf("--link %s: %w", link, err)
	}
	return nil
}

// spec checks the flags and is what they ask for.
func (f *benchFlags) spec(op string) (bench.Spec, error) {
	s := bench.Spec{Op: op, Root: f.root, Warmup: f.warmup, Iterations: f.iterations, Check: f.check == 1, Garbage: f.garbage,
		Way: strings.TrimSpace(f.order + " " + f.algorithm + " " + f.memory)}
	if f.check != 0 && f.check != 1 {
		return s, fmt.Errorf("-c must be 0 or 1, not %d", f.check)
	}
	if f.memory != memoryHeap && f.memory != memoryShared {
		return s, fmt.Errorf("--memory %s: there are %s and %s", f.memory, memoryHeap, memoryShared)
	}
	if f.memory == memoryShared && f.transport == "inproc" {
		return s, errors.New("--memory shared is for ranks that are processes, not for --transport inproc")
	}
	if f.link != "" {
		s.Time = limitedTime
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
	if err := f.checkAlgorithm(op); err != nil {
		return s, err
	}
	if err := f.checkDevice(&s); err != nil {
		return s, err
	}
	return s, s.Validate(f.ranks * f.nodes)
}

// checkAlgorithm finds what is wrong with the flags that choose an algorithm.
func (f *benchFlags) checkAlgorithm(op string) error {
	if err := f.orderFlags.check(); err != nil || f.algorithm == "" {
		return err
	}
	m, err := schedule.ParseMethod(f.algorithm)
	switch {
	case err != nil:
		return fmt.Errorf("--algorithm: %w", err)
	case op != "allreduce":
		return fmt.Errorf("--algorithm chooses how an allreduce is done, not %s", op)
	case !m.RingOrdered() && f.chosenOrder() == collective.RingOrder:
		return fmt.Errorf("--algorithm %v folds in another order than ring order: give --order any, too", m)
	}
	return nil
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
