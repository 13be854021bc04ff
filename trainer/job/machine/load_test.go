package machine

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// The peak is the load of the busiest quarter.
func TestLoadOf(t *testing.T) {
	times := []ProcessorTime{{busy: 100, all: 1000}}
	then := func(busy uint64) {
		last := times[len(times)-1]
		times = append(times, ProcessorTime{busy: last.busy + busy, all: last.all + 20})
	}
	for _, busy := range []uint64{0, 20, 10, 5, 18, 0, 0, 7} {
		then(busy)
	}
	busy, peak := loadOf(times)
	require.InDelta(t, 60./160, busy, 1e-12)
	require.InDelta(t, 38./40, peak, 1e-12, "20 and 18 of 20")

	busy, peak = loadOf(append(times[:2:2], times[1])) // no time has passed between the last two
	require.Zero(t, busy)
	require.Zero(t, peak)
	busy, peak = loadOf(times[:1])
	require.Negative(t, busy)
	require.Negative(t, peak)
}

func TestLoadMeter(t *testing.T) {
	m := StartLoadMeter()
	for began := time.Now(); time.Since(began) < 2*loadEvery; { // be busy
	}
	busy, peak := m.Stop()
	if _, ok := ProcessorTimes(); !ok {
		require.Negative(t, busy)
		require.Negative(t, peak)
		return
	}
	require.Positive(t, busy)
	require.GreaterOrEqual(t, peak, busy)
	require.LessOrEqual(t, peak, 1.)
}
