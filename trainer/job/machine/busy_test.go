package machine

import (
	"runtime"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestBusy(t *testing.T) {
	const rest = "\ncpu0 1 1 1 1 1 1 1 1 0 0\nintr 5\n"
	before, ok := parseProcessorTime("cpu  10 20 30 400 50 6 7 8 9 10" + rest) // guest time is in user time already
	require.True(t, ok)
	require.Equal(t, ProcessorTime{busy: 10 + 20 + 30 + 6 + 7 + 8, all: 10 + 20 + 30 + 400 + 50 + 6 + 7 + 8}, before)
	after, ok := parseProcessorTime("cpu  40 20 30 460 60 6 7 8 9 10" + rest)
	require.True(t, ok)
	require.InDelta(t, 0.3, after.BusySince(before), 1e-12, "30 of 100")
	require.Negative(t, after.BusySince(after), "no time has passed")
	require.Negative(t, before.BusySince(after), "counters went back")
	for _, stat := range []string{"", "cpu", "cpu 1 2 3", "intr 1 2 3 4 5 6 7 8", "cpu a b c d e f g h"} {
		_, ok := parseProcessorTime(stat)
		require.False(t, ok, stat)
	}
}

func TestGiB(t *testing.T) {
	require.Equal(t, "unknown", GiB(0))
	require.Equal(t, "1.0 GiB", GiB(1<<30))
	require.Equal(t, "15.5 GiB", GiB(31<<29))
}

// The description of this machine is consistent.
func TestThis(t *testing.T) {
	m := This()
	require.Equal(t, runtime.NumCPU(), m.Cores)
	require.GreaterOrEqual(t, m.Online, 1)
	require.LessOrEqual(t, m.Available, m.Memory)
	_, err := time.Parse(time.RFC3339Nano, m.Time)
	require.NoError(t, err)
	require.Contains(t, m.Time, "Z", "UTC")
	room := Memory()
	require.Positive(t, room)
	if m.Memory > 0 {
		require.LessOrEqual(t, room, m.Memory)
	}
	if m.Limit > 0 {
		require.LessOrEqual(t, room, m.Limit)
	}
	require.NotEmpty(t, Processor())
}
