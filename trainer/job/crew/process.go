package crew

import (
	"context"
	"io"
	"os"

	"github.com/ringtrain/ringtrain/collective/cluster"
)

// A Process says what this process is in a job: a worker started by a [Crew], or a
// launcher. Workers have the command line of their launcher, so both reach the same
// line of a program.
type Process struct {
	// Launched is what torchrun, Open MPI, Slurm or MPICH told this process. They start
	// one process for each rank, and each launches a single worker. Launched is nil
	// without them, and in a worker.
	Launched *cluster.Launched

	place    cluster.Config
	isWorker bool
}

// ThisProcess reads from the environment whether this process is a launcher or a
// worker. Nothing else decides it.
func ThisProcess() (Process, error) {
	place, isWorker, err := cluster.FromEnv()
	if err != nil || isWorker {
		return Process{place: place, isWorker: isWorker}, err
	}
	launched, err := cluster.FromLauncher(os.Getenv)
	return Process{Launched: launched}, err
}

// IsWorker reports whether a Crew started this process.
func (p Process) IsWorker() bool { return p.isWorker }

// Shape returns the number of workers on this machine and of machines in the job, if
// the program that started this process said so.
func (p Process) Shape() (workers, nodes int, told bool) {
	switch {
	case p.isWorker:
		return p.place.LocalSize, max(p.place.Nodes, 1), true
	case p.Launched != nil:
		return p.Launched.LocalSize, p.Launched.Nodes, true
	}
	return 0, 0, false
}

// Follows reports whether another process of the job shows it to the user.
func (p Process) Follows() bool { return p.Launched != nil && p.Launched.Rank > 0 }

// A Part is what a process does in a job.
type Part struct {
	Launch func(context.Context) error          // what a launcher does, such as Crew.Launch
	Work   func(context.Context, *Worker) error // what a worker does
	Stdout io.Writer                            // where a worker's events go
	Stderr io.Writer                            // where a worker's log lines go
}

// Run runs this process's part: Work in a worker, Launch in any other process. A worker
// ends with its launcher. If Work fails, Run reports the error to the launcher and returns
// an *EndError without Err.
func (p Process) Run(ctx context.Context, part Part) error {
	if ctx == nil {
		ctx = context.Background()
	}
	if p.isWorker {
		return runWorker(ctx, p.place, part)
	}
	return part.Launch(ctx)
}
