package cli

import (
	"fmt"

	"github.com/spf13/cobra"

	"github.com/ringtrain/ringtrain/trainer"
	"github.com/ringtrain/ringtrain/trainer/job"
	"github.com/ringtrain/ringtrain/trainer/job/crew"
)

func estimateCommand(a *app) *cobra.Command {
	f := job.Spec{Catalog: a.catalog, Gradients: job.Gradients{Rounds: trainer.DiLoCo(job.DefaultInnerSteps)}}
	asJSON := false
	cmd := &cobra.Command{
		Use:   "estimate CONFIG [flags] [--section.key VALUE ...]",
		Short: "Estimate the memory and traffic of a run",
		Long: `Estimate how many parameters the model of a config has, how much memory a run takes,
and how many bytes each worker sends per step. Nothing is trained: one batch of zeros goes
through the model, to measure the activations.`,
		Example: "  ringtrain estimate examples/mnist.cfg --workers 16 --batch 64",
		Args:    oneConfig,
		RunE: func(cmd *cobra.Command, args []string) error {
			given := cmd.Flags().Changed
			if given("workers") && f.Workers < 1 {
				return usage(fmt.Errorf("--workers must be at least 1, not %d", f.Workers))
			}
			if given("batch") && f.Batch < 1 {
				return usage(fmt.Errorf("--batch must be at least 1, not %d", f.Batch))
			}
			if err := checkRounds(cmd.Flags(), f.Strategy); err != nil {
				return usage(err)
			}
			if err := checkCompress(given, f.Gradients.Compress); err != nil {
				return usage(err)
			}
			if err := checkData(cmd.Flags(), f.Options); err != nil {
				return usage(err)
			}
			f.Config, f.Overrides = args[0], a.overrides
			s, err := f.Describe()
			if err != nil {
				return err
			}
			if s.Workers > crew.MaxRanks { // larger byte counts could overflow
				return usagef("--workers must be at most %d, as many as a job can have, not %d", crew.MaxRanks, s.Workers)
			}
			e, err := s.Estimate()
			if err != nil {
				return err
			}
			if asJSON {
				return a.writeJSON(e)
			}
			writeEstimate(a, e)
			return nil
		},
	}
	cmd.Flags().IntVar(&f.Workers, "workers", 0, "`N` workers in all (default ray.num_workers of the config, or 1)")
	cmd.Flags().IntVar(&f.Batch, "batch", 0, "`ROWS` of each worker in one step (default training.batch_size of the config)")
	addStrategy(cmd.Flags(), &f)
	cmd.Flags().Lookup("strategy").Usage = "how workers agree on the next weights, `NAME`: allreduce (sum gradients in every step), local-sgd (average weights after every --inner-steps) or diloco (average them and apply an outer optimizer); estimate does not support parameter servers"
	addData(cmd.Flags(), a.catalog, &f.Data, &f.Options)
	addCompress(cmd.Flags(), &f.Gradients.Compress)
	cmd.Flags().BoolVar(&asJSON, "json", false, "print one JSON object")
	return cmd
}

func writeEstimate(a *app, e *job.Estimate) {
	for _, line := range []struct {
		name  string
		bytes int
		note  string
	}{
		{"values", e.Values, "of each worker"},
		{"gradients", e.Gradients, "an arena for each micro-batch"},
		{"optimizer", e.Slots, "its slots"},
		{"compression", e.Compression, "what it keeps back, and packed gradients"},
		{"activations", e.Activations, fmt.Sprintf("of a batch of %d", e.Batch)},
		{"data", e.Data, "the whole set, and batches"},
		{"all workers", e.Total, fmt.Sprintf("%d on one machine", e.Workers)},
		{"checkpoint", e.Checkpoint, "each, on disk, at most"},
		{"sent in a step", e.Wire, "by each worker: " + e.Plan},
	} {
		if line.name == "values" {
			fmt.Fprintf(a.stdout, "%-15s %12d\n", "parameters", e.Parameters)
		}
		fmt.Fprintf(a.stdout, "%-15s %12d bytes  %s\n", line.name, line.bytes, line.note)
	}
}
