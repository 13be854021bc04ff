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

func TestPlanSent(t *testing.T) {
	require.Zero(t, schedule.PlanReduce(1, 1000, 4, true, true).Sent(1, 4000))
	require.Equal(t, 3*4000, schedule.PlanReduce(4, 1000, 4, true, true).Sent(4, 4000), "all of it to every rank")
	for _, near := range []bool{true, false} {
		require.Equal(t, 6<<20, schedule.PlanReduce(4, 1<<20, 4, near, true).Sent(4, 4<<20), "pieces to their owners, and back")
	}
}
