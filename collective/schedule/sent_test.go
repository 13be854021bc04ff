package schedule_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ringtrain/ringtrain/collective/schedule"
)

// With Bruck and Collected, the longest message holds the vectors of several ranks,
// because ranks forward what they have received.
func TestPlanMessage(t *testing.T) {
	for m, want := range map[schedule.Method][]int{ // of 1, 2, 3, ... ranks
		schedule.OneShot:   {10, 10, 10, 10, 10, 10, 10, 10, 10},
		schedule.Bruck:     {10, 10, 10, 20, 20, 20, 30, 40, 40},
		schedule.Collected: {10, 10, 10, 20, 20, 20, 30, 40, 40},
	} {
		for i, n := range want {
			require.Equal(t, n, schedule.Plan{Method: m, Segment: schedule.BlockLen}.Message(i+1, 10), "%v of %d", m, i+1)
		}
	}
}

// Other methods cut a vector, or the chunks of the ranks, into messages. A chunk may have an element
// more than others.
func TestPlanMessageOfParts(t *testing.T) {
	for m, want := range map[schedule.Method]int{schedule.Ring: 4, schedule.Direct: 4, schedule.Tree: 10, schedule.Halving: 10} {
		require.Equal(t, want, schedule.Plan{Method: m, Segment: schedule.BlockLen}.Message(3, 10), m)
		require.Equal(t, schedule.BlockLen, schedule.Plan{Method: m, Segment: schedule.BlockLen}.Message(3, 1<<20), m)
	}
}

func TestPlanSent(t *testing.T) {
	require.Equal(t, 7000, schedule.Plan{Method: schedule.Collected}.Sent(4, 4000), "4 operands go up, and 3 results down")
	require.Zero(t, schedule.PlanReduce(1, 1000, 4, true, true).Sent(1, 4000))
	require.Equal(t, 3*4000, schedule.PlanReduce(4, 1000, 4, true, true).Sent(4, 4000), "all of it to every rank")
	for _, near := range []bool{true, false} {
		require.Equal(t, 6<<20, schedule.PlanReduce(4, 1<<20, 4, near, true).Sent(4, 4<<20), "pieces to their owners, and back")
	}
}
