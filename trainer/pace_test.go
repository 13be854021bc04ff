package trainer

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestPatienceFollowsTheMedianStep(t *testing.T) {
	var p pace
	now := time.Unix(1000, 0)
	require.Equal(t, 10*time.Minute, p.patience(now, false))
	for range 5 {
		now = now.Add(10 * time.Millisecond)
		require.Equal(t, minPatience, p.patience(now, false))
	}
	now = now.Add(time.Hour) // one slow step changes nothing
	require.Equal(t, minPatience, p.patience(now, false))
	for range paceLen {
		now = now.Add(10 * time.Second)
		p.patience(now, false)
	}
	require.Equal(t, 200*time.Second, p.patience(now.Add(10*time.Second), false))
	require.Len(t, p.steps, paceLen)
	require.Equal(t, 10*time.Minute, p.patience(now, true), "somebody writes a checkpoint")
}
