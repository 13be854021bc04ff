package cli

import (
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/ringtrain/ringtrain/collective"
	"github.com/ringtrain/ringtrain/trainer/job/tuned"
)

// addOrder adds the flags of a command that reduces.
func addOrder(cmd *cobra.Command, f *tuned.Choice) {
	addOrderAlone(cmd, f)
	under(cmd, networkFlags, func(flags *pflag.FlagSet) {
		flags.StringVar(&f.Table, "tune", tuned.Auto, "choose the algorithm of each size from `TABLE`: auto (what ringtrain tune saved for these ranks, if anything), off, or a file; rank 0's choice counts")
	})
}

// addOrderAlone adds --order.
func addOrderAlone(cmd *cobra.Command, f *tuned.Choice) {
	under(cmd, networkFlags, func(flags *pflag.FlagSet) {
		flags.StringVar(&f.Order, "order", collective.RingOrder.String(), "`ORDER` of additions: ring (the same bits on every transport) or any (more algorithms; the same bits on every rank and in every run with the same plan)")
	})
}
