package cli

import (
	"context"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/ringtrain/ringtrain/nn"
	"github.com/ringtrain/ringtrain/nn/cpu"
	"github.com/ringtrain/ringtrain/trainer/catalog"
	"github.com/ringtrain/ringtrain/trainer/job"
)

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
	predictor, err := t.Predictor()
	if err != nil {
		return usage(err)
	}
	for p, err := range predictor.All(ctx) {
		if err != nil {
			return err
		}
		if err := a.tellPrediction(p, asJSON); err != nil {
			return err
		}
	}
	return a.stdout.failure()
}

// tellPrediction writes a line for one row.
func (a *app) tellPrediction(p catalog.Prediction, asJSON bool) error {
	if asJSON {
		line, err := p.MarshalJSON()
		if err == nil {
			_, err = fmt.Fprintf(a.stdout, "%s\n", line)
		}
		return err
	}
	texts := make([]string, len(p))
	for i, f := range p {
		texts[i] = f.Text
	}
	_, err := fmt.Fprintln(a.stdout, strings.Join(texts, " "))
	return err
}

// loader returns a Loader of trained weights for a backend.
func (a *app) loader(backend nn.Backend) *job.Loader {
	return &job.Loader{Catalog: a.catalog, Backend: backend, Cache: a.cache()}
}
