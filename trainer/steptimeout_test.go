package trainer

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestStepTimeoutFollowsTheMedianStep(t *testing.T) {
	var p stepTimeout
	now := time.Unix(1000, 0)
	require.Equal(t, 10*time.Minute, p.begin(now, false))
	for range 5 {
		now = now.Add(10 * time.Millisecond)
		require.Equal(t, minStepTimeout, p.begin(now, false))
	}
	now = now.Add(time.Hour) // one slow step changes nothing
	require.Equal(t, minStepTimeout, p.begin(now, false))
	for range timedSteps {
		now = now.Add(10 * time.Second)
		p.begin(now, false)
	}
	require.Equal(t, 200*time.Second, p.begin(now.Add(10*time.Second), false))
	require.Len(t, p.steps, timedSteps)
	require.Equal(t, 10*time.Minute, p.begin(now, true), "a rank writes a checkpoint")
}
