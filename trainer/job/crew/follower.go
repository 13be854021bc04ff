package crew

import "github.com/ringtrain/ringtrain/trainer/job/event"

// A follower is the Display of a launcher that is not rank 0's, under mpirun and the
// like. Rank 0's launcher shows the job; this one shows only which ranks its own worker
// has lost.
type follower struct{ Display }

// Emit is part of event.Sink.
func (f follower) Emit(e event.Event) {
	if _, lost := e.(*event.Lost); lost {
		f.Display.Emit(e)
	}
}
