package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"strings"

	"github.com/spf13/cobra"

	"github.com/ringtrain/ringtrain/nn/cpu"
	"github.com/ringtrain/ringtrain/trainer/catalog"
)

func sampleCommand(a *app) *cobra.Command {
	var o catalog.GenerateOptions
	var best bool
	cmd := &cobra.Command{
		Use:   "sample CHECKPOINT --prompt TEXT [flags]",
		Short: "Continue a prompt with trained weights",
		Long: `Print a prompt and continue it with trained weights, character by character with those of a
language model. CHECKPOINT is the --out directory of a run, or a file in it. No data is
needed.

The same weights and flags always give the same continuation.`,
		Example: "  ringtrain sample run1 --prompt 'func '\n  ringtrain sample run1 --prompt 'The ' --temperature 0.7 --top-k 20 --seed 2",
		Args:    exactly("CHECKPOINT"),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := checkSample(cmd.Flags().Changed, o); err != nil {
				return usage(err)
			}
			return a.sample(context.Background(), args[0], best, o)
		},
	}
	cmd.Flags().StringVar(&o.Prompt, "prompt", "", "`TEXT` to continue; a language model must know its characters")
	cmd.Flags().IntVar(&o.Length, "length", 500, "`N` characters to add")
	cmd.Flags().Float64Var(&o.Temperature, "temperature", 1, "divide the logarithms of probabilities by `X`; a value below 1 favours probable continuations; 0 always takes the most probable")
	cmd.Flags().IntVar(&o.TopK, "top-k", 0, "choose among the `K` most probable continuations (default all)")
	cmd.Flags().Uint64Var(&o.Seed, "seed", 0, "seed `N` of the choices (default 0)")
	addBest(cmd, &best)
	return cmd
}

// checkSample checks the flags by themselves.
func checkSample(given func(string) bool, o catalog.GenerateOptions) error {
	switch {
	case !given("prompt"):
		return errors.New("--prompt is missing: give a text to continue, as in --prompt 'The '")
	case o.Length < 0:
		return fmt.Errorf("--length must be at least 0, not %d", o.Length)
	case !(o.Temperature >= 0 && !math.IsInf(o.Temperature, 0)):
		return fmt.Errorf("--temperature must be at least 0 and finite, not %v", o.Temperature)
	case o.TopK < 0 || o.TopK == 0 && given("top-k"):
		return fmt.Errorf("--top-k must be at least 1, not %d; leave it out to choose among all", o.TopK)
	}
	return nil
}

func (a *app) sample(ctx context.Context, path string, best bool, o catalog.GenerateOptions) error {
	backend := cpu.New(cpu.Options{})
	defer backend.Close()
	generator, err := a.loader(backend, best).Generator(path)
	if err != nil {
		return usage(err)
	}
	pieces, err := generator.Generate(ctx, o)
	if err != nil {
		return usagef("--prompt: %w", err)
	}
	end := "\n"
	for piece, err := range pieces {
		if err != nil {
			return fmt.Errorf("%s: %w", path, err)
		}
		if _, err := io.WriteString(a.stdout, piece); err != nil {
			return err
		}
		end = "\n"
		if strings.HasSuffix(piece, "\n") {
			end = ""
		}
	}
	_, err = io.WriteString(a.stdout, end)
	return err
}
