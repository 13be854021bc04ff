package trainer

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestPatienceFollowsTheMedianStep(t *testing.T) {
	var p patience
	now := time.Unix(1000, 0)
	require.Equal(t, 10*time.Minute, p.limit(now, false))
	for range 5 {
		now = now.Add(10 * time.Millisecond)
		require.Equal(t, minPatience, p.limit(now, false))
	}
	now = now.Add(time.Hour) // one slow step changes nothing
	require.Equal(t, minPatience, p.limit(now, false))
	for range patienceLen {
		now = now.Add(10 * time.Second)
		p.limit(now, false)
	}
	require.Equal(t, 200*time.Second, p.limit(now.Add(10*time.Second), false))
	require.Len(t, p.steps, patienceLen)
	require.Equal(t, 10*time.Minute, p.limit(now, true), "somebody writes a checkpoint")
}
