package schedule_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ringtrain/ringtrain/collective/schedule"
)

func TestPlanSent(t *testing.T) {
	require.Zero(t, schedule.PlanReduce(1, 1000, 4, true, true).Sent(1, 4000))
	require.Equal(t, 3*4000, schedule.PlanReduce(4, 1000, 4, true, true).Sent(4, 4000), "all of it to everybody")
	for _, near := range []bool{true, false} {
		require.Equal(t, 6<<20, schedule.PlanReduce(4, 1<<20, 4, near, true).Sent(4, 4<<20), "pieces to their owners, and back")
	}
}
