package crew

import (
	"errors"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ringtrain/ringtrain/trainer/job/event"
)

// All survivors report a lost rank. The user reads one line, or none if the error of the
// job names the rank.
func TestLossesAreReportedOnce(t *testing.T) {
	kept := &losses{Display: nowhere{}}
	for _, by := range []int{3, 0, 1} {
		e := &event.Lost{Rank: 2, Node: "vm/2", SeenBy: by, Op: "AllReduce", Phase: "heartbeat", AfterMs: float64(by), Error: "connection lost"}
		if by == 0 {
			e.Error += " (reported by rank 1)"
		}
		kept.Emit(e)
	}
	killed := errors.New("worker 2 was killed")
	require.Equal(t, []string{"ranks 0, 1, 3 lost rank 2 (vm/2) in AllReduce (heartbeat) after 1.0 ms: connection lost"}, kept.lines(killed))
	require.Empty(t, kept.lines(fmt.Errorf("x: %w", &WorkerError{"worker 0", event.Failed{Error: "rank 2 (vm/2) failed"}})))

	kept.Emit(&event.Lost{Rank: 4, Node: "vm/4", SeenBy: 0, Op: "Barrier", Phase: "wait", AfterMs: 1, Error: "gone"})
	require.Equal(t, "rank 0 lost rank 4 (vm/4) in Barrier (wait) after 1.0 ms: gone", kept.lines(nil)[1])

	other := &heard{}
	(&losses{Display: other}).Emit(&event.Step{})
	(&losses{Display: other}).Emit(&event.Lost{Left: 3})
	Quiet(other).Emit(&event.Lost{})
	Quiet(other).Emit(&event.Eval{})
	require.Equal(t, []event.Event{&event.Step{}, &event.Lost{Left: 3}, &event.Eval{}}, other.events)
}

// heard is a Display that records events.
type heard struct {
	nowhere
	events []event.Event
}

func (h *heard) Emit(e event.Event) { h.events = append(h.events, e) }
