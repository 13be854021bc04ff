package crew

import "github.com/ringtrain/ringtrain/trainer/job/event"

// A follower shows what another process does not know: how this one's worker
// fails.
type follower struct{ Display }

// Emit is part of event.Sink.
func (f follower) Emit(e event.Event) {
	if _, lost := e.(*event.Lost); lost {
		f.Display.Emit(e)
	}
}
