package cli

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/spf13/cobra"
	"gorgonia.org/tensor"

	"github.com/ringtrain/ringtrain/nn"
	"github.com/ringtrain/ringtrain/nn/cpu"
	"github.com/ringtrain/ringtrain/trainer/data"
	"github.com/ringtrain/ringtrain/trainer/job"
)

// predictRows is the batch size of predictions.
const predictRows = 256

// prediction is a model's prediction for one row.
type prediction struct {
	Row         int     `json:"row"` // counts from 0
	Class       int     `json:"class"`
	Probability float32 `json:"probability"` // of the class
}

func predictCommand(a *app) *cobra.Command {
	var source string
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "predict CHECKPOINT [flags]",
		Short: "Say which class each row has",
		Long: `Say for each row of a dataset which class trained weights give it, and how probable they
hold that: row (from 0), class, probability, a line for each row. CHECKPOINT is what train
--out has written: the directory or a file in it.

Labels are not needed. Rows are all images of idx:FILE, or the test images of mnist:DIR,
whose other files may be missing. Images must have the size that the model was trained on;
their pixels are divided by 255, as in training.`,
		Example: "  ringtrain predict run1 --data mnist:DIR\n  ringtrain predict run1 --data idx:scans-idx3-ubyte.gz",
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) != 1 {
				return usagef("predict takes one CHECKPOINT, not %d", len(args))
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.predict(context.Background(), args[0], source, asJSON)
		},
	}
	cmd.Flags().StringVar(&source, "data", "digits", "digits, mnist:DIR (its test images) or idx:FILE (images in an IDX file, plain or .gz)")
	_ = cmd.RegisterFlagCompletionFunc("data", cobra.FixedCompletions([]string{"digits", "mnist:", "idx:"}, cobra.ShellCompDirectiveNoFileComp|cobra.ShellCompDirectiveNoSpace)) // fails for a flag that is not there
	cmd.Flags().BoolVar(&asJSON, "json", false, "write a JSON object for each row")
	return cmd
}

func (a *app) predict(ctx context.Context, path, source string, asJSON bool) error {
	backend := cpu.New(cpu.Options{})
	defer backend.Close()
	t, err := a.loader(backend).Load(ctx, path, source, false)
	if err != nil {
		return usage(err)
	}
	images := t.Rows
	x := make([]float32, min(predictRows, images.Rows)*images.Features())
	var rows []int32
	for lo := 0; lo < images.Rows; lo += predictRows {
		rows = data.Range(rows[:0], lo, min(lo+predictRows, images.Rows))
		if err := images.Gather(rows, x, nil); err != nil {
			return err
		}
		n := len(rows)
		probs, err := t.Model.Predict(ctx, tensor.New(tensor.WithShape(n, images.Features()), tensor.WithBacking(x[:n*images.Features()])))
		if err != nil {
			return err
		}
		if err := a.tellPredictions(lo, probs, asJSON); err != nil {
			return err
		}
	}
	return nil
}

// tellPredictions writes a line per row of probabilities (rows, classes).
func (a *app) tellPredictions(first int, probs *tensor.Dense, asJSON bool) error {
	values, classes := probs.Data().([]float32), probs.Shape()[1]
	for i := range probs.Shape()[0] {
		p := prediction{Row: first + i}
		for class, v := range values[i*classes : (i+1)*classes] {
			if v > p.Probability {
				p.Class, p.Probability = class, v
			}
		}
		if p.Probability == 0 {
			return fmt.Errorf("row %d has no probability: the weights are finite, but too large to compute with", p.Row)
		}
		if !asJSON {
			fmt.Fprintf(a.stdout, "%d %d %.4f\n", p.Row, p.Class, p.Probability)
			continue
		}
		if err := json.NewEncoder(a.stdout).Encode(p); err != nil {
			return err
		}
	}
	return a.stdout.failure()
}

// loader returns a Loader of trained weights for a backend.
func (a *app) loader(backend nn.Backend) *job.Loader {
	return &job.Loader{Catalog: a.catalog, Backend: backend, Cache: a.cache()}
}
