package trainer

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestStepTimeoutFollowsTheMedianStep(t *testing.T) {
	var p stepTimeout
	now := time.Unix(1000, 0)
	require.Equal(t, 10*time.Minute, p.begin(now, 1, false))
	for range 5 {
		now = now.Add(10 * time.Millisecond)
		require.Equal(t, minStepTimeout, p.begin(now, 1, false))
	}
	now = now.Add(time.Hour) // one slow step changes nothing
	require.Equal(t, minStepTimeout, p.begin(now, 1, false))
	for range timedSteps {
		now = now.Add(10 * time.Second)
		p.begin(now, 1, false)
	}
	require.Equal(t, 200*time.Second, p.begin(now.Add(10*time.Second), 1, false))
	require.Len(t, p.steps, timedSteps)
	require.Equal(t, 10*time.Minute, p.begin(now, 1, true), "a rank writes a checkpoint")
}

// Launches of different numbers of steps have limits by the time of a step.
func TestStepTimeoutOfSeveralSteps(t *testing.T) {
	var p stepTimeout
	now := time.Unix(1000, 0)
	require.Equal(t, 10*time.Minute, p.begin(now, 1, false))
	now = now.Add(2 * time.Second)
	require.Equal(t, 64*20*2*time.Second, p.begin(now, 64, false))
	now = now.Add(64 * 4 * time.Second)
	require.Equal(t, 20*4*time.Second, p.begin(now, 1, false))
}
