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
)

func evalCommand(a *app) *cobra.Command {
	var source string
	var asJSON, best bool
	cmd := &cobra.Command{
		Use:   "eval CHECKPOINT [flags]",
		Short: "Measure trained weights on test data",
		Long: `Measure trained weights on the test rows of a dataset. CHECKPOINT is the --out
directory of a run, whose newest weights are used, or a file in it. With mnist:DIR,
only the test images and their labels are needed.`,
		Example: "  ringtrain eval run1 --data mnist:DIR",
		Args:    exactly("CHECKPOINT"),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := checkEmpty(cmd.Flags(), "data"); err != nil {
				return usage(err)
			}
			return a.eval(context.Background(), evalFlags{args[0], source, asJSON, best})
		},
	}
	cmd.Flags().StringVar(&source, "data", "", "rows with labels: `SOURCE` is "+a.catalog.TestUsage(true)+" (default the rows that train evaluated on)")
	cmd.Flags().BoolVar(&asJSON, "json", false, "write the result as a JSON object")
	addBest(cmd, &best)
	return cmd
}

// evalFlags are the argument and the flags of eval.
type evalFlags struct {
	path, source string
	json, best   bool
}

func (a *app) eval(ctx context.Context, f evalFlags) error {
	backend := cpu.New(cpu.Options{})
	defer backend.Close()
	t, err := a.loader(backend, f.best).Load(ctx, f.path, f.source, true)
	if err != nil {
		return usage(err)
	}
	warn(a.stderr, t.Warnings)
	if t.Seen {
		fmt.Fprintf(a.stderr, "ringtrain: note: %s includes rows that the weights were trained on; leave out --data for those that train evaluated on\n", f.source)
	}
	task, err := t.Task()
	if err != nil {
		return usage(err)
	}
	counts, err := trainer.Score(ctx, backend, task)
	if err != nil {
		return err
	}
	rows := counts[nn.CountRows]
	loss := counts[nn.CountLoss] / max(rows, 1)
	if math.IsNaN(loss) || math.IsInf(loss, 0) {
		return fmt.Errorf("%s: the loss is not finite: its weights are finite, but too large to compute with", f.path)
	}
	sum, err := checkpoint.Hash(t.Weights)
	if err != nil {
		return err
	}
	if f.json {
		result := map[string]any{"event": "result", "loss": loss, "rows": int(rows), "weights_sha256": sum}
		for _, m := range task.Metrics(counts) {
			result[m.Name] = m.Value
		}
		return a.writeJSON(result)
	}
	text := ""
	for _, m := range task.Metrics(counts) {
		if m.Detail {
			continue
		}
		text += fmt.Sprintf("%s %.4f, ", m.Name, m.Value)
	}
	fmt.Fprintf(a.stdout, "%sloss %.4f on %d rows of %s\nweights sha256 %s\n", text, loss, int(rows), t.Source, sum)
	return nil
}
