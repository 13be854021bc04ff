package job_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"gorgonia.org/tensor"

	"github.com/ringtrain/ringtrain/nn/cpu"
	"github.com/ringtrain/ringtrain/trainer/catalog"
	"github.com/ringtrain/ringtrain/trainer/checkpoint"
	"github.com/ringtrain/ringtrain/trainer/job"
	"github.com/ringtrain/ringtrain/trainer/job/crew"
	"github.com/ringtrain/ringtrain/trainer/job/event"
)

// A results is a Display that shows the result of a job.
type results struct{}

func (results) Emit(e event.Event) {
	if r, ok := e.(*event.Result); ok {
		fmt.Printf("accuracy %.4f after %d steps\n", r.Metrics.Value("accuracy"), r.Steps)
	}
}

func (results) Log(string, []byte) {}
func (results) Notice(string)      {}

// A program that trains with four worker processes. The workers are the same program and
// reach the same call of Run.
func ExampleRun() {
	spec := job.NewSpec(catalog.New(), "examples/mnist.cfg")
	spec.Workers = 4
	spec.Saving.Dir = "run1"
	err := job.Run(context.Background(), spec, job.Options{Display: results{}, Stderr: os.Stderr})
	var wrong *crew.UsageError
	var end *crew.EndError
	switch {
	case errors.As(err, &wrong):
		fmt.Println("nothing was started:", wrong)
	case errors.As(err, &end):
		fmt.Println("the job ended before it was done:", end)
	}
}

// A program predicts rows of a CSV file with the weights of a run, as "ringtrain predict"
// does. A service does this for each request, with a Backend of its own, because a Backend
// belongs to one goroutine and frees models when it is closed.
func ExampleLoader_LoadInput() {
	run1, err := trainedLine() // of "ringtrain train regression.cfg --data csv:lines.csv --target y --out run1"
	if err != nil {
		fmt.Println(err)
		return
	}
	defer os.RemoveAll(run1)

	ctx, backend := context.Background(), cpu.New(cpu.Options{})
	defer backend.Close()
	loader := job.Loader{Catalog: catalog.New(), Backend: backend}
	loaded, err := loader.LoadInput(ctx, run1, "csv", catalog.Input{Stream: strings.NewReader("x\n1\n2.5\n")})
	if err != nil {
		fmt.Println(err)
		return
	}
	predictor, err := loaded.Predictor()
	if err != nil {
		fmt.Println(err)
		return
	}
	for p, err := range predictor.All(ctx) {
		if err != nil {
			fmt.Println(err)
			return
		}
		line, err := json.Marshal(p)
		fmt.Println(string(line), err)
	}
	// Output:
	// {"row":0,"value":3} <nil>
	// {"row":1,"value":6} <nil>
}

// trainedLine writes the weights of y = 2x + 1 to a directory, as a run leaves them.
func trainedLine() (dir string, err error) {
	if dir, err = os.MkdirTemp("", "run"); err != nil {
		return "", err
	}
	return dir, checkpoint.Save(filepath.Join(dir, "model.safetensors"), checkpoint.File{
		Tensors: []checkpoint.Named{
			{Name: "layers.0.W", Tensor: tensor.New(tensor.WithShape(1, 1), tensor.WithBacking([]float32{2}))},
			{Name: "layers.0.b", Tensor: tensor.New(tensor.WithShape(1), tensor.WithBacking([]float32{1}))},
		},
		Metadata: map[string]string{
			"format": checkpoint.Format, "config": "[model]\n@layers = \"Linear.v1\"\n", "task": "regression.v1",
			"table": `{"target": "y", "columns": [{"name": "x", "mean": 0, "deviation": 1}], "mean": 0, "deviation": 1}`,
		},
	})
}
