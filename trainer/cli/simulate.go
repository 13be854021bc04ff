package cli

import (
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/ringtrain/ringtrain/bench"
	"github.com/ringtrain/ringtrain/collective/schedule"
	"github.com/ringtrain/ringtrain/trainer/job"
)

// simulateFlags are the flags of "simulate".
type simulateFlags struct {
	bench.SimulationRun
	compute string
	json    bool
}

func simulateCommand(a *app) *cobra.Command {
	var f simulateFlags
	cmd := &cobra.Command{
		Use:   "simulate [flags] [--section.key VALUE ...]",
		Short: "Predict how training scales to many machines",
		Long: `Predict the time of a training step with up to 4096 workers, each on a machine of its own.
Nothing is trained or sent: the messages of each algorithm travel in virtual time, over
links with the given rate and latency.

With --from, model, links and compute are those of an earlier "bench scaling --hosts netns",
and the processor time of messages is fitted to its measurements with 2 and 4 workers. Other
flags then replace what they name, to predict another link, model or machine. Overrides and
--data then need --config.

The bound is the least time that bytes, links and the order in which gradients become final
allow. A second table compares the algorithms of allreduce.

Exit codes: 0 done, 1 failed, 2 wrong usage, config or data.`,
		Example: `  ringtrain simulate --link 10gbit --compute emulate:100ms
  ringtrain simulate --from scaling/scaling.json --workers 8,16,1024
  ringtrain simulate --from scaling/scaling.json --cores 0 --link 10gbit`,
		Args: nothing,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := checkEmpty(cmd.Flags(), "from", "link", "config"); err != nil {
				return usage(err)
			}
			if err := f.check(cmd.Flags()); err != nil {
				return usage(err)
			}
			f.Catalog, f.Overrides, f.Command = a.catalog, a.overrides, a.command()
			s, err := f.Run()
			if err != nil {
				return err
			}
			if f.json {
				return s.WriteJSON(a.stdout)
			}
			return s.Text(a.stdout)
		},
	}
	f.register(cmd.Flags(), a)
	return cmd
}

// register adds the flags.
func (f *simulateFlags) register(flags *pflag.FlagSet, a *app) {
	flags.IntSliceVar(&f.Workers, "workers", []int{2, 4, 8, 16, 32, 64, 128, 256, 512, 1024, 2048, 4096}, "worker counts to predict, a `LIST`")
	flags.StringVar(&f.System, "system", "allreduce,ps-sync,diloco", "`NAMES` of the strategies, as for bench scaling; allreduce:ALGORITHM fixes the algorithm")
	flags.StringVar(&f.From, "from", "", "fit to the measurements in `FILE`, a scaling.json of bench scaling")
	flags.StringVar(&f.compute, "compute", "", "compute of a step, emulate:`TIME`, such as emulate:116.7ms")
	flags.IntVar(&f.InnerSteps, "inner-steps", 0, fmt.Sprintf("with local-sgd and diloco, workers train alone for `N` steps between exchanges (default %d)", job.DefaultInnerSteps))
	flags.StringVar(&f.Link, "link", "", "`RATE` of each machine's link in each direction, such as 1gbit")
	flags.DurationVar(&f.Latency, "latency", time.Duration(schedule.Network.Latency), "latency `TIME` of a message; with --from, what the fit finds")
	flags.IntVar(&f.Cores, "cores", -1, "all machines share `N` cores, as network namespaces do; 0: each has its own (default 0, or those of --from)")
	flags.Lookup("cores").DefValue = "0" // which help does not repeat; -1 means neither
	flags.StringVar(&f.Config, "config", "", "predict for the model that `FILE` describes (default that of --from, or 784-128-128-10)")
	addData(flags, a.catalog, &f.Data, &f.Options)
	flags.BoolVar(&f.json, "json", false, "print one JSON object")
}

// check checks the flags by themselves and parses --compute.
func (f *simulateFlags) check(flags *pflag.FlagSet) (err error) {
	given := flags.Changed
	if given("compute") {
		if !strings.HasPrefix(f.compute, "emulate:") {
			return fmt.Errorf("--compute must be emulate:TIME, such as emulate:116.7ms, not %q: nothing is computed", f.compute)
		}
		emulated := scalingFlags{}
		emulated.Compute.Flag = f.compute
		if f.Compute, err = emulated.emulated(); err != nil {
			return err
		}
	}
	switch {
	case f.Latency < 0:
		return fmt.Errorf("--latency must be at least 0, not %v", f.Latency)
	case f.From != "" && !given("latency"):
		f.Latency = -1 // that of the fit
	}
	if given("inner-steps") && f.InnerSteps < 1 {
		return fmt.Errorf("--inner-steps must be at least 1, not %d", f.InnerSteps)
	}
	if f.From != "" && f.Config == "" && given("data") {
		return fmt.Errorf("--data has no effect with --from, whose file has the model: add --config, or leave it out")
	}
	return checkData(flags, f.Options)
}
