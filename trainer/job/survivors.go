package job

import (
	"context"
	"sync/atomic"

	"github.com/ringtrain/ringtrain/collective"
	"github.com/ringtrain/ringtrain/trainer/job/crew"
	"github.com/ringtrain/ringtrain/trainer/paramserver"
)

// survives reports whether a run continues without a worker that is killed or stopped: its
// servers do not wait for all workers, and are processes of their own. On several machines, the
// launcher of a lost worker would not know that the others continue, and end its own.
func survives(f *Spec) bool {
	return f.asynchronous() && f.ServerProcesses() > 0 && f.Place.Transport != crew.TransportInProcess && f.Place.Nodes < 2
}

// survivors is what a process of such a run needs to continue. All its processes are on one
// machine.
type survivors struct {
	spec   *Spec
	worker *crew.Worker
	tells  bool         // this is rank 0, which reports losses for all
	left   atomic.Int64 // workers, after a loss
}

// newSurvivors returns the survivors of a process; nil if a loss ends the job.
func newSurvivors(f *Spec, w *crew.Worker) *survivors {
	if !survives(f) {
		return nil
	}
	return &survivors{spec: f, worker: w, tells: w.Group().Rank() == 0}
}

// regroup returns the group after one in which a worker was lost.
func (s *survivors) regroup(ctx context.Context, _ error) (*collective.Group, error) {
	return s.worker.Survive(ctx, s.spec.Place.JoinTimeout)
}

// lost hears of a worker that the others continue without.
func (s *survivors) lost(lost *collective.RankError, left int) {
	s.left.Store(int64(left))
	if s.tells {
		crew.TellSurvived(s.worker.Events, 0, lost, left)
	}
}

// serversOf returns how a worker reaches the servers of an asynchronous training.
func serversOf(r *rank) paramserver.Servers {
	s := paramserver.Servers{Group: r.served}
	if r.survivors != nil {
		s.Regroup, s.Lost = r.survivors.regroup, r.survivors.lost
	}
	return s
}

// leftOf returns how many workers are left, 0 if all are.
func leftOf(r *rank) int {
	if r.survivors == nil {
		return 0
	}
	return int(r.survivors.left.Load())
}

// abort breaks the groups of a rank, so that no other waits for it.
func abort(r *rank, err error) {
	r.group.Abort(err)
	switch {
	case r.partners != nil:
		r.served.Abort(err)
	case r.survivors != nil:
		r.worker.Group().Abort(err)
	}
}

// disconnect is Disconnect.
func disconnect(ctx context.Context, r *rank) error {
	if r.survivors != nil {
		r.finished() // the others leave as soon as they are disconnected
	}
	return Disconnect(ctx, r.strategy)
}

// meet waits until all ranks have finished. A rank that leaves earlier could break a call that
// others are still in, and until all have finished the job is no success. Survivors make no more
// calls, and their launcher waits for all processes.
func meet(ctx context.Context, r *rank) error {
	if r.survivors != nil {
		return nil
	}
	return r.group.Barrier(ctx)
}

// agree tells all ranks of a failure to write the weights. Among survivors, rank 0 writes them
// for all.
func agree(ctx context.Context, r *rank, mine error) error {
	if r.survivors != nil {
		return mine
	}
	return crew.Agree(ctx, r.group, mine)
}
