package job_test

import (
	"context"
	"errors"
	"fmt"
	"os"

	"github.com/ringtrain/ringtrain/trainer/catalog"
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
