package cli

import (
	"fmt"

	"github.com/spf13/cobra"

	"github.com/ringtrain/ringtrain/trainer/data"
	"github.com/ringtrain/ringtrain/trainer/job/machine"
)

func dataCommand(a *app) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "data",
		Short: "Generate datasets",
		Args:  cobra.NoArgs,
		RunE:  func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	var o data.DigitsOptions
	digits := &cobra.Command{
		Use:   "digits DIR [flags]",
		Short: "Generate synthetic digits as IDX files",
		Long: `Generate synthetic digits and write them to DIR as four compressed IDX files, like those of
MNIST. Without flags they are the images that train uses by default.`,
		Example: "  ringtrain data digits DIR\n  ringtrain train examples/mnist.cfg --data mnist:DIR",
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) != 1 {
				return usagef("data digits takes one directory, not %d", len(args))
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			for _, name := range []string{"train", "test", "side"} {
				if n, _ := cmd.Flags().GetInt(name); n < 1 {
					return usagef("--%s must be at least 1, not %d", name, n)
				}
			}
			if need, room := (float64(o.Train)+float64(o.Test))*float64(o.Side)*float64(o.Side), machine.Memory(); need > float64(room) {
				return usagef("%d + %d images of %dx%d take %.3g GB, more than the %.3g GB of memory of this machine: lower --train, --test or --side", o.Train, o.Test, o.Side, o.Side, need/1e9, float64(room)/1e9)
			}
			train, test := data.Generate(o)
			if err := data.WriteMNIST(args[0], train, test); err != nil {
				return usage(err)
			}
			fmt.Fprintf(a.stdout, "%s: %d training and %d test images of %dx%d\n", args[0], train.Rows, test.Rows, train.Height, train.Width)
			return nil
		},
	}
	digits.Flags().IntVar(&o.Train, "train", 20_000, "`N` training images")
	digits.Flags().IntVar(&o.Test, "test", 4_000, "`N` test images")
	digits.Flags().IntVar(&o.Side, "side", 28, "`N` pixels wide and high")
	digits.Flags().Uint64Var(&o.Seed, "seed", 0, "seed `N`; different seeds give different digits (default 0)")
	cmd.AddCommand(digits)
	return cmd
}
