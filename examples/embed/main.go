// Command embed trains a model with three workers and follows their events. Run it
// from the root of the repository. Each worker is this program, started again: main
// runs in it, too, and comes to the same call of Run.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/signal"

	"github.com/ringtrain/ringtrain/trainer/catalog"
	"github.com/ringtrain/ringtrain/trainer/job"
	"github.com/ringtrain/ringtrain/trainer/job/crew"
	"github.com/ringtrain/ringtrain/trainer/job/event"
)

type screen struct{} // shows a job

func (screen) Emit(e event.Event) {
	switch e := e.(type) {
	case *event.Eval:
		fmt.Printf("step %d: accuracy %.3f\n", e.Step, e.Metrics.Value("accuracy"))
	case *event.Result:
		fmt.Printf("%d workers trained %d steps: weights %s\n", e.Workers, e.Steps, e.WeightsSHA256)
	}
}

func (screen) Log(worker string, line []byte) {
	if worker != "" { // else the job itself says it
		fmt.Fprintf(os.Stderr, "[%s] ", worker)
	}
	fmt.Fprintf(os.Stderr, "%s\n", line)
}

func (screen) Notice(text string) { fmt.Fprintln(os.Stderr, text) }

func main() {
	flag.Usage = func() {
		fmt.Fprint(flag.CommandLine.Output(), "Usage: go run ./examples/embed\n\nTrain examples/mnist.cfg with three workers, from the root of the repository.\n")
	}
	flag.Parse()
	if flag.NArg() > 0 {
		flag.Usage()
		os.Exit(2)
	}
	spec := job.NewSpec(catalog.New(), "examples/mnist.cfg")
	spec.Workers, spec.Steps = 3, 20
	signals := make(chan os.Signal, 2)
	signal.Notify(signals, os.Interrupt)
	err := job.Run(context.Background(), spec, job.Options{Display: screen{}, Signals: signals, Stderr: os.Stderr})
	if crew.Explain(os.Stderr, err) != nil {
		os.Exit(1)
	}
}
