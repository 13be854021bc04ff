package cli

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/ringtrain/ringtrain/bench"
	"github.com/ringtrain/ringtrain/collective/cluster"
	"github.com/ringtrain/ringtrain/trainer/job/crew"
	"github.com/ringtrain/ringtrain/trainer/launch"
)

// Bounds of "bench scaling".
const (
	mostScalingTrials = 1000
	mostEmulated      = time.Minute // that a step's compute may take
)

// scalingFlags are the flags of "bench scaling".
type scalingFlags struct {
	workers  []int
	trials   int
	steps    int
	system   string // names, separated by commas; a worker's is one
	config   string
	data     string
	hosts    string
	link     string
	compute  string
	evaluate bool
	out      string
	force    bool
	keyFile  string
	insecure bool

	published bool

	transport string // as train's, without inproc
}

func (a *app) scalingCommand() *cobra.Command {
	var f scalingFlags
	cmd := &cobra.Command{
		Use:   "scaling [flags]",
		Short: "Measure how training scales with the number of workers",
		Long: `Train with each number of workers in turn, several times, and print tables: the time of
all steps, its growth T(N)/T(1), the speedup T(1)/T(N) and the scalability N*T(1)/T(N); where
the time of a step goes; and how many bytes are sent. Each worker makes all the steps, on
rows of its own, so ideally the time does not change.

The trainings are those of "ringtrain train". Trials take turns: one with each number of
workers, then the next with each.

With --hosts netns (as root, on Linux) each worker has its own network namespace, so that
this machine looks like several. Their links carry what --link says, over TCP; traffic is
encrypted unless --insecure is given, and is counted at the links as well.

With --compute emulate:116.7ms workers wait instead of computing, as a host waits for its
GPU, and release gradients in the order of a backward pass. So a machine can run more
workers than it has cores. Rows during which more than 85 % of the processors were busy are
marked core-bound.

` + exitCodes("failed", "wrong usage, config or data"),
		Example: `  ringtrain bench scaling --workers 1,2 --steps 200
  ringtrain bench scaling --hosts netns --link 1gbit \
      --compute emulate:116.7ms --steps 50 --out scaling`,
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) > 0 {
				return usagef("bench scaling takes flags alone, not %q", args[0])
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := a.identify(); err != nil {
				return err
			}
			if err := a.unlaunched("bench scaling"); err != nil {
				return usage(err)
			}
			took, err := f.check(cmd.Flags().Changed)
			if err != nil {
				return usage(err)
			}
			return a.scaling(cmd.Context(), f, took)
		},
	}
	f.register(cmd)
	return cmd
}

// register adds the flags to those of the command.
func (f *scalingFlags) register(cmd *cobra.Command) {
	under(cmd, measureFlags, func(flags *pflag.FlagSet) {
		flags.IntSliceVar(&f.workers, "workers", []int{1, 2, 4, 8, 16}, "worker counts to measure, a `LIST` that includes 1")
		flags.IntVar(&f.trials, "trials", 3, "train `N` times with each worker count")
		flags.IntVar(&f.steps, "steps", 100, "train for `N` steps each time")
		flags.StringVar(&f.system, "system", bench.Systems()[0], "how workers train together, `NAMES` of strategies: "+strings.Join(bench.Systems(), ","))
		flags.StringVar(&f.compute, "compute", "real", "`HOW` to compute: real, or emulate:TIME, such as emulate:116.7ms, to wait that long in each step instead")
		flags.BoolVar(&f.evaluate, "evaluate", false, "evaluate as the config says; the time then includes it")
	})
	under(cmd, dataFlags, func(flags *pflag.FlagSet) {
		flags.StringVar(&f.config, "config", "", "train the model that `FILE` describes, as for train (default 784-128-128-10 with dropout, Adam, 128 rows per worker)")
		flags.StringVar(&f.data, "data", "digits", dataUsage)
	})
	under(cmd, networkFlags, func(flags *pflag.FlagSet) {
		addHosts(flags, "worker", &f.hosts, &f.link)
		flags.StringVar(&f.transport, "transport", cluster.TransportAuto, "exchange data by `KIND`: shm (shared memory), tcp, or auto (tcp with --hosts netns, else shm)")
		flags.StringVar(&f.keyFile, "key-file", "", "encrypt all traffic with the key in `FILE`, made by ringtrain keygen (default $"+cluster.EnvKeyFile+", or a new key with --hosts netns)")
		flags.BoolVar(&f.insecure, "insecure", false, "with --hosts netns, do not encrypt")
	})
	under(cmd, outputFlags, func(flags *pflag.FlagSet) {
		flags.BoolVar(&f.published, "published", false, "also show the figures that the README of spacy_ray_collective (2021) reports of other programs, in a table of their own and in the plots")
		flags.StringVar(&f.out, "out", "", "write table.md, scaling.json, scaling.csv and the plots runtime, speedup and scalability (.png and .svg) to `DIR`")
		flags.BoolVar(&f.force, "force", false, forceUsage)
	})
}

// check finds what is wrong with the flags alone, and returns what a step's
// emulated compute takes; 0: it is real.
func (f *scalingFlags) check(given func(string) bool) (time.Duration, error) {
	least, most := slices.Min(append(f.workers, mostRanks+1)), slices.Max(append(f.workers, 0))
	sorted := slices.Sorted(slices.Values(f.workers))
	switch {
	case least < 1 || most > mostRanks:
		return 0, fmt.Errorf("--workers must be from 1 to %d each", mostRanks)
	case least != 1:
		return 0, errors.New("--workers must have 1 among them: growth and scalability are measured against one worker")
	case len(slices.Compact(sorted)) != len(f.workers):
		return 0, errors.New("--workers names a number twice; for more trainings of each, use --trials")
	case f.trials < 1 || f.trials > mostScalingTrials:
		return 0, fmt.Errorf("--trials must be from 1 to %d", mostScalingTrials)
	case f.steps < 1:
		return 0, errors.New("--steps must be at least 1")
	case f.hosts != "local" && f.hosts != "netns":
		return 0, fmt.Errorf("--hosts must be local or netns, not %s", f.hosts)
	case !slices.Contains(scalingTransports(), f.transport):
		return 0, fmt.Errorf("--transport must be %s, not %s", strings.Join(scalingTransports(), ", "), f.transport)
	case f.hosts == "netns" && f.transport == cluster.TransportSHM:
		return 0, errors.New("--transport shm goes past the links of --hosts netns, which could then not be measured: there it must be tcp")
	case f.hosts != "netns" && given("link"):
		return 0, errors.New("--link needs --hosts netns: only there can the links be limited")
	case f.hosts != "netns" && f.insecure:
		return 0, errors.New("--insecure needs --hosts netns: on this machine alone nothing is encrypted without a key")
	case f.hosts == "netns" && most > launch.MaxNodes:
		return 0, fmt.Errorf("--hosts netns has room for %d workers, not %d", launch.MaxNodes, most)
	case f.force && f.out == "":
		return 0, errors.New("--force needs --out: say which directory to take")
	case f.insecure && given("key-file"):
		return 0, errors.New("--insecure does not go with --key-file")
	}
	if given("link") {
		if err := checkLink(f.link); err != nil {
			return 0, err
		}
	}
	for i, name := range f.systems() {
		if !slices.Contains(bench.Systems(), name) || slices.Contains(f.systems()[:i], name) {
			return 0, fmt.Errorf("--system %s: name each once, of %s", f.system, strings.Join(bench.Systems(), ","))
		}
	}
	return f.emulated()
}

// scalingTransports are what --transport may be: workers are processes.
func scalingTransports() []string {
	return []string{cluster.TransportAuto, cluster.TransportTCP, cluster.TransportSHM}
}

// chosen is the transport that workers are told. In namespaces it is as of
// machines of their own, whatever these could share.
func (f *scalingFlags) chosen() string {
	if f.hosts == "netns" {
		return cluster.TransportTCP
	}
	return f.transport
}

func (f *scalingFlags) systems() []string { return strings.Split(f.system, ",") }

// emulated reads --compute.
func (f *scalingFlags) emulated() (time.Duration, error) {
	kind, text, _ := strings.Cut(f.compute, ":")
	if f.compute == "real" {
		return 0, nil
	}
	if kind != "emulate" {
		return 0, fmt.Errorf("--compute must be real or emulate:TIME, not %s", f.compute)
	}
	took, err := time.ParseDuration(text)
	if err != nil || took <= 0 || took > mostEmulated {
		return 0, fmt.Errorf("--compute %s: the time must be one such as 116.7ms, up to %v", f.compute, mostEmulated)
	}
	if f.evaluate {
		return 0, errors.New("--evaluate computes in earnest: it does not go with --compute emulate")
	}
	return took, nil
}

// training is the flags of train that stand for one training by so many
// workers. A system is a strategy.
func (f *scalingFlags) training(system string, workers int) trainFlags {
	t := trainFlags{workers: workers, data: f.data, steps: f.steps, strategy: system, logLevel: "error"}
	t.Nodes, t.KeyFile, t.Insecure, t.Transport = 1, f.keyFile, f.insecure, f.chosen()
	return t
}

// scaling is the whole of "bench scaling", as launcher or as worker. took is
// what a step's emulated compute takes, 0 if it is real.
func (a *app) scaling(ctx context.Context, f scalingFlags, took time.Duration) error {
	return a.run(ctx, func(ctx context.Context) error {
		signals := make(chan os.Signal, 4)
		signal.Notify(signals, crew.StopSignals()...)
		defer signal.Stop(signals)
		return a.measureScaling(ctx, f, signals)
	}, func(ctx context.Context, w *worker) error { return w.scale(ctx, f, took) })
}

// defaultScaling is what is trained without --config.
const defaultScaling = `[training]
batch_size = 128

[evaluation]
batch_size = 256
frequency = 10

[model]
@layers = "relu_relu_softmax.v1"
hidden_width = 128
dropout = 0.2

[optimizer]
@optimizers = "Adam.v1"
`

// configFile is the config as a file that workers can read, and what removes
// it when they have.
func (f *scalingFlags) configFile() (path string, remove func() error, err error) {
	if f.config != "" {
		return f.config, func() error { return nil }, nil
	}
	file, err := os.CreateTemp("", "ringtrain-scaling-*.cfg")
	if err != nil {
		return "", nil, err
	}
	_, err = file.WriteString(defaultScaling)
	if err = errors.Join(err, file.Close()); err != nil {
		return "", nil, errors.Join(err, os.Remove(file.Name()))
	}
	return file.Name(), func() error { return os.Remove(file.Name()) }, nil
}

// command is the command line as a user would type it.
func (a *app) command() string {
	words := []string{"ringtrain"}
	for _, arg := range a.args {
		if strings.ContainsAny(arg, " \t\"'$\\*?;&|<>()") || arg == "" {
			arg = strconv.Quote(arg)
		}
		words = append(words, arg)
	}
	return strings.Join(words, " ")
}
