package crew

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/ringtrain/ringtrain/collective"
	"github.com/ringtrain/ringtrain/trainer/job/event"
	"github.com/ringtrain/ringtrain/trainer/launch"
)

// survivors says which workers of a Crew have been lost and did not end the job.
type survivors struct {
	mu    sync.Mutex
	begun bool                   // the workers have formed their group
	named map[string]bool        // lost workers that a worker has reported
	dead  map[string]launch.Exit // those that it has not
}

// begin records that the workers have formed their group. Without a worker that is lost
// before, it is never formed.
func (s *survivors) begin() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.begun = true
}

// spare reports whether the job may survive the failure of a worker: a signal killed it. If the
// others cannot continue, they fail.
func (s *survivors) spare(exit launch.Exit) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if exit.Signal == 0 || !s.begun {
		return false
	}
	if !s.named[exit.Name] {
		if s.dead == nil {
			s.dead = map[string]launch.Exit{}
		}
		s.dead[exit.Name] = exit
	}
	return true
}

// name records that a worker has reported the loss of another.
func (s *survivors) name(lost string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.named == nil {
		s.named = map[string]bool{}
	}
	s.named[lost] = true
	delete(s.dead, lost)
}

// unnamed returns how workers died of which no other has reported the loss, by name.
func (s *survivors) unnamed() (all []launch.Exit) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, name := range slices.Sorted(maps.Keys(s.dead)) {
		all = append(all, s.dead[name])
	}
	return all
}

// onLost handles a worker's report of a loss. It ends a lost process that still exists, such as
// one that is stopped.
func (l *launcher) onLost(e *event.Lost) {
	if e.Left > 0 {
		_, local, _ := strings.Cut(e.Node, "/")
		name := "worker " + local
		l.survivors.name(name)
		l.mu.Lock()
		p := l.running[name]
		l.mu.Unlock()
		if p != nil {
			_ = l.job.Kill(p) // if the job is over, it has ended
		}
	}
	l.show.Emit(e)
}

// blamed returns the death of a worker without which another failed, if that was not reported as
// a loss that the job survives; nil if there is none.
func (l *launcher) blamed(failure event.Failed) *launch.Exit {
	for _, exit := range l.survivors.unnamed() {
		_, local, _ := strings.Cut(exit.Name, " ")
		if strings.Contains(failure.Error, fmt.Sprintf("(%s/%s)", l.Place.Node, local)) {
			return &exit
		}
	}
	return nil
}

// endRest ends what is left of a job that survives losses, when worker 0 has ended without a
// failure: the others have done their work by then, and have graceTime. One may be stopped.
func (l *launcher) endRest() {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.over {
		return
	}
	l.timers = append(l.timers, time.AfterFunc(graceTime, func() {
		l.mu.Lock()
		rest := slices.Collect(maps.Values(l.running))
		l.mu.Unlock()
		l.endServers(rest)
	}))
}

// TellSurvived emits an event.Lost for a worker that the others continue without.
func TellSurvived(to event.Sink, self int, lost *collective.RankError, left int) {
	e := lossOf(self, lost)
	e.Left = left
	to.Emit(e)
}

// Survive returns the next group, of the processes that are left after one was lost. All of them
// call it. limit is the most time to form it.
func (w *Worker) Survive(ctx context.Context, limit time.Duration) (*collective.Group, error) {
	ctx, cancel := context.WithTimeoutCause(ctx, limit, ErrJoinTimeout)
	defer cancel()
	g, err := w.node.Regroup(ctx, w.Group())
	if err != nil {
		return nil, fmt.Errorf("continuing without a lost worker: %w", joinTimedOut(err, limit))
	}
	w.flight.group.Store(g)
	return g, nil
}

// Group returns the newest group of this process; nil before Form.
func (w *Worker) Group() *collective.Group { return w.flight.group.Load() }
