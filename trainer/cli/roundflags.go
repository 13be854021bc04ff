package cli

import (
	"fmt"
	"slices"

	"github.com/spf13/pflag"

	"github.com/ringtrain/ringtrain/trainer"
	"github.com/ringtrain/ringtrain/trainer/config"
	"github.com/ringtrain/ringtrain/trainer/job"
)

// addStrategy adds --strategy and --inner-steps.
func addStrategy(flags *pflag.FlagSet, f *job.Spec) {
	flags.StringVar(&f.Strategy, "strategy", "allreduce", "how workers agree on the next weights, `NAME`: allreduce (sum gradients in every step), ps-sync (the same, by parameter servers), ps-async (parameter servers apply each gradient when it comes), ps-peers (workers are parameter servers for each other, and do not wait), local-sgd (average weights after every --inner-steps) or diloco (average them and apply an outer optimizer)")
	flags.IntVar(&f.Gradients.Rounds.Steps, "inner-steps", job.DefaultInnerSteps, "with local-sgd and diloco, workers train alone for `N` steps between exchanges")
}

// addOuter adds the flags of outer steps.
func addOuter(flags *pflag.FlagSet, r *trainer.Rounds) {
	usual := trainer.DiLoCo(job.DefaultInnerSteps)
	flags.Float64Var(&r.Rate, "outer-rate", usual.Rate, "learning rate `R` of diloco's outer optimizer")
	flags.Float64Var(&r.Momentum, "outer-momentum", usual.Momentum, "Nesterov momentum `M` of diloco's outer optimizer")
}

// checkRounds reports flags without the strategy that they need.
func checkRounds(flags *pflag.FlagSet, strategy string) error {
	for _, c := range []struct {
		flag  string
		needs []string
	}{
		{"inner-steps", []string{"diloco", "local-sgd"}},
		{"outer-rate", []string{"diloco"}},
		{"outer-momentum", []string{"diloco"}},
	} {
		if flags.Changed(c.flag) && !slices.Contains(c.needs, strategy) {
			return fmt.Errorf("--%s needs --strategy %s", c.flag, config.Either(c.needs))
		}
	}
	return checkEmpty(flags, "strategy")
}
