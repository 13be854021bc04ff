package job

import (
	"context"
	"io"
	"os"
	"strings"

	"github.com/ringtrain/ringtrain/trainer/job/crew"
	"github.com/ringtrain/ringtrain/trainer/job/event"
)

// Run trains as f says. In the process that the user started, Run is the launcher: it
// starts the workers of this machine and returns when they have ended. Workers are the
// same program, started again with the same arguments, and there Run is the worker. So
// every process must reach Run with the same Spec, and whatever main does before Run
// happens in each of them. The trained weights are in the directory Spec.Saving.Dir.
//
// o.Signals ends the job gracefully: workers finish the step and save. If ctx ends,
// workers receive SIGTERM and are killed half a second later.
//
// The error is a *crew.UsageError if Run found a mistake before anything started, and a
// *crew.EndError if the job ended before it was done. A worker reports its error to the
// launcher, which reports it to the user; see crew.Explain.
//
// Fields of o may be left out, see Options.WithDefaults.
func Run(ctx context.Context, f Spec, o Options) error {
	p, err := crew.ThisProcess()
	if err != nil {
		return crew.Usage(err)
	}
	f.adopt(p)
	if err := f.Check(); err != nil {
		return crew.Usage(err)
	}
	o = o.WithDefaults()
	return p.Run(ctx, crew.Part{
		Stdout: o.Stdout, Stderr: o.Stderr,
		Work: func(ctx context.Context, w *crew.Worker) error { return Work(ctx, w, f, o.Stderr) },
		Launch: func(ctx context.Context) error {
			s, err := f.Settle()
			if err != nil {
				return err
			}
			return s.Launch(ctx, o)
		},
	})
}

// adopt sets the numbers of workers and machines to those of the launcher, torchrun, MPI
// or Slurm that started this process, if any.
func (f *Spec) adopt(p crew.Process) {
	f.Place.Process = p
	if workers, nodes, known := p.Shape(); known {
		f.Workers, f.Place.Nodes = workers, nodes
		if p.IsWorker() {
			f.Workers -= serversHere(f)
		}
	}
}

// WithDefaults returns o with values for the fields that are not set: nothing is shown,
// and workers get the arguments of this process.
func (o Options) WithDefaults() Options {
	if o.Display == nil {
		o.Display = hidden{}
	}
	if o.Stdout == nil {
		o.Stdout = os.Stdout
	}
	if o.Stderr == nil {
		o.Stderr = io.Discard
	}
	if o.Args == nil {
		o.Args = os.Args[1:]
	}
	if o.Command == "" {
		o.Command = strings.Join(os.Args, " ")
	}
	if o.Cache == nil {
		o.Cache = &Cache{Stderr: o.Stderr, Quiet: true}
	}
	return o
}

// hidden is a Display that shows nothing.
type hidden struct{}

func (hidden) Emit(event.Event)   {}
func (hidden) Log(string, []byte) {}
func (hidden) Notice(string)      {}
