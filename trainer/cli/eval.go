package cli

import (
	"context"
	"fmt"
	"math"

	"github.com/spf13/cobra"

	"github.com/ringtrain/ringtrain/nn"
	"github.com/ringtrain/ringtrain/nn/cpu"
	"github.com/ringtrain/ringtrain/trainer"
	"github.com/ringtrain/ringtrain/trainer/checkpoint"
	"github.com/ringtrain/ringtrain/trainer/data"
)

func evalCommand(a *app) *cobra.Command {
	var source string
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "eval CHECKPOINT [flags]",
		Short: "Measure trained weights on test data",
		Long: `Measure trained weights on the test rows of a dataset. CHECKPOINT is what train --out has
written: the directory, of which the newest is taken, or a file in it. Of mnist:DIR it
needs the test images and their labels; the training files may be missing.`,
		Example: "  ringtrain eval run1 --data mnist:DIR",
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) != 1 {
				return usagef("eval takes one CHECKPOINT, not %d", len(args))
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.eval(context.Background(), args[0], source, asJSON)
		},
	}
	cmd.Flags().StringVar(&source, "data", "digits", "digits or mnist:DIR (test images and labels)")
	cmd.Flags().BoolVar(&asJSON, "json", false, "write the result as a JSON object")
	return cmd
}

func (a *app) eval(ctx context.Context, path, source string, asJSON bool) error {
	backend := cpu.New(cpu.Options{})
	defer backend.Close()
	t, err := a.loader(backend).Load(ctx, path, source, true)
	if err != nil {
		return usage(err)
	}
	counts, err := trainer.Score(ctx, backend, t.Model, data.NewPart(t.Rows, 0, 1, 256, backend))
	if err != nil {
		return err
	}
	rows := max(counts[nn.CountRows], 1)
	accuracy, loss := counts[nn.CountCorrect]/rows, counts[nn.CountLoss]/rows
	if math.IsNaN(loss) || math.IsInf(loss, 0) {
		return fmt.Errorf("%s: the loss is not finite: its weights are finite, but too large to compute with", path)
	}
	sum, err := checkpoint.Hash(t.Weights)
	if err != nil {
		return err
	}
	if asJSON {
		return a.writeJSON(map[string]any{"event": "result", "accuracy": accuracy, "loss": loss, "rows": int(rows), "weights_sha256": sum})
	}
	fmt.Fprintf(a.stdout, "accuracy %.4f, loss %.4f on %d rows of %s\nweights sha256 %s\n", accuracy, loss, int(rows), source, sum)
	return nil
}
