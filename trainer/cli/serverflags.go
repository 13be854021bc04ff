package cli

import (
	"errors"

	"github.com/spf13/pflag"

	"github.com/ringtrain/ringtrain/trainer/job"
)

// addServers adds the flags of strategies with parameter servers.
func addServers(flags *pflag.FlagSet, g *job.Gradients) {
	a := &g.Asynchrony
	flags.StringVar(&g.Servers, "servers", "", "with ps-sync and ps-async, start `N` server processes, divided among the machines, or colocated to make every worker a server (default 1)")
	flags.IntVar(&g.Restarts, "max-restarts", 0, "with ps-sync, restart killed servers, up to `N` times in all on each machine, and continue training (default 0: the job ends)")
	flags.StringVar(&g.ServerDir, "server-dir", "", "servers of ps-sync keep what a restart needs in `DIR`: twice their weights and optimizer state (default a temporary directory)")
	flags.IntVar(&a.Quorum, "quorum", 0, "with ps-sync, ps-async and ps-peers, update as soon as `K` gradients have come (default with ps-sync: those of all workers; with ps-peers: as many as there are workers; with ps-async: 1)")
	flags.DurationVar(&a.Timeout, "straggler-timeout", 0, "with ps-sync and ps-async --quorum, wait at most `TIME` after the first gradient of an update, such as 200ms, and continue with those that have come")
	flags.StringVar(&a.MaxStaleness, "max-staleness", "", "with ps-async, gradients that were computed on weights from more than `K` updates ago are late (default no limit)")
	flags.StringVar(&a.Stale, "stale", "", "with ps-async, treat late gradients by `HOW`: drop, or damp (scale the update by 1/(1+staleness)); without --max-staleness, damp applies to every gradient not computed on the newest weights (default drop)")
}

// checkAsynchrony reports values that stand for a flag that is not given.
func checkAsynchrony(given func(string) bool, a job.Asynchrony) error {
	switch {
	case given("quorum") && a.Quorum == 0:
		return errors.New("--quorum must be at least 1, not 0")
	case given("straggler-timeout") && a.Timeout == 0:
		return errors.New("--straggler-timeout must be longer than 0, not 0s")
	case given("max-staleness") && a.MaxStaleness == "":
		return errors.New(`--max-staleness must be a number of updates, 0 or more, not ""`)
	case given("stale") && a.Stale == "":
		return errors.New(`--stale must be drop or damp, not ""`)
	}
	return nil
}
