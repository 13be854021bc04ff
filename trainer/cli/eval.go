package cli

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strconv"

	"github.com/spf13/cobra"

	"github.com/ringtrain/ringtrain/collective"
	"github.com/ringtrain/ringtrain/nn"
	"github.com/ringtrain/ringtrain/nn/cpu"
	"github.com/ringtrain/ringtrain/trainer"
	"github.com/ringtrain/ringtrain/trainer/checkpoint"
	"github.com/ringtrain/ringtrain/trainer/config"
	"github.com/ringtrain/ringtrain/trainer/data"
)

func (a *app) evalCommand() *cobra.Command {
	var source string
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "eval CHECKPOINT [flags]",
		Short: "Measure trained weights on test data",
		Long: `Measure trained weights on the test rows of a dataset. CHECKPOINT is a file that train
--out has written, or its directory.`,
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
	cmd.Flags().StringVar(&source, "data", "digits", "digits or mnist:DIR; its test rows are used")
	cmd.Flags().BoolVar(&asJSON, "json", false, "write the result as a JSON object")
	return cmd
}

func (a *app) eval(ctx context.Context, path, source string, asJSON bool) error {
	file, path, err := openCheckpoint(path)
	if err != nil {
		return usage(err)
	}
	named, err := a.catalog.Data(source)
	if err != nil {
		return usage(err)
	}
	set, err := named.Open(ctx)
	if err != nil {
		return usage(err)
	}
	backend := cpu.New(cpu.Options{})
	defer backend.Close()
	model, err := a.restore(path, file, set, backend)
	if err != nil {
		return usage(err)
	}
	views, transports := collective.Local(1)
	group := collective.NewGroup(views[0], collective.OverTransport(views[0], transports[0]), collective.Options{})
	defer group.Close()
	counts, err := trainer.Evaluate(ctx, group, backend, model, data.NewPart(set.Test, 0, 1, 256, backend))
	if err != nil {
		return err
	}
	rows := max(counts[nn.CountRows], 1)
	accuracy, loss := counts[nn.CountCorrect]/rows, counts[nn.CountLoss]/rows
	sum, err := checkpoint.Hash(file.Tensors)
	if err != nil {
		return err
	}
	if asJSON {
		(&jsonEmitter{w: a.stdout}).emit(map[string]any{"event": "result", "accuracy": accuracy, "loss": loss, "rows": int(rows), "weights_sha256": sum})
		return nil
	}
	fmt.Fprintf(a.stdout, "accuracy %.4f, loss %.4f on %d rows of %s\nweights sha256 %s\n", accuracy, loss, int(rows), source, sum)
	return nil
}

// openCheckpoint reads weights from a file or from the directory of --out.
func openCheckpoint(path string) (checkpoint.File, string, error) {
	if info, err := os.Stat(path); err == nil && info.IsDir() {
		path = filepath.Join(path, weightsFile)
	}
	file, err := checkpoint.Load(path)
	if err != nil {
		return file, path, err
	}
	if file.Metadata["format"] != "ringtrain.v1" {
		return file, path, fmt.Errorf("%s: it says nothing of the model it belongs to; it was not written by ringtrain train", path)
	}
	return file, path, nil
}

// restore builds the model that a checkpoint describes, with its weights.
func (a *app) restore(path string, file checkpoint.File, set *data.Set, backend nn.Backend) (nn.Model, error) {
	cfg, err := config.Parse(path, file.Metadata["config"], nil)
	if err != nil {
		return nil, fmt.Errorf("the config in it: %w", err)
	}
	layers, err := a.catalog.Layers(cfg)
	if err != nil {
		return nil, err
	}
	height, _ := strconv.Atoi(file.Metadata["height"])
	width, _ := strconv.Atoi(file.Metadata["width"])
	classes, _ := strconv.Atoi(file.Metadata["classes"])
	if height < 1 || width < 1 || classes < 1 || height > 1<<16 || width > 1<<16 {
		return nil, fmt.Errorf("%s: its notes do not say for which images and classes it is", path)
	}
	if set.Test.Height != height || set.Test.Width != width {
		return nil, fmt.Errorf("%s is for images of %dx%d, the data has %dx%d", path, height, width, set.Test.Height, set.Test.Width)
	}
	if set.Test.Classes > classes {
		return nil, fmt.Errorf("%s knows %d classes, the data has %d", path, classes, set.Test.Classes)
	}
	model, err := nn.NewClassifier(backend, layers, []int{height * width}, classes, 0)
	if err != nil {
		return nil, err
	}
	if want := len(model.Params().List); len(file.Tensors) != want {
		return nil, fmt.Errorf("%s has %d parameters, its model %d", path, len(file.Tensors), want)
	}
	for _, t := range file.Tensors {
		if err := model.Params().SetWeight(t.Name, t.Tensor); err != nil {
			return nil, fmt.Errorf("%s: %w", path, err)
		}
	}
	return model, nil
}
