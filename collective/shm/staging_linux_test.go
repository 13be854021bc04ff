package shm

import (
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// virtual makes some copies of 1000 bytes, which take as long as took says, and
// returns how many were non-temporal.
func (s *staging) virtual(copies int, took func(i int, past bool) time.Duration) (past int) {
	for i := range copies {
		p := s.stream()
		if p {
			past++
		}
		s.measured(p, 1000, took(i, p))
	}
	return past
}

func nearCores(int, bool) time.Duration { return 60 }

func farCores(_ int, past bool) time.Duration {
	if past {
		return 50
	}
	return 300
}

// Copies are non-temporal if the other ranks are far, and hardly ever if they are near. If
// either changes, that is found out soon.
func TestStaging(t *testing.T) {
	var s staging
	require.Equal(t, stagingKept, s.virtual(2*stagingKept, nearCores), "both kinds are tried")
	require.Equal(t, 10, s.virtual(10*tryEvery, nearCores))
	require.False(t, s.far)

	s.virtual(stagingKept+2, farCores)
	require.True(t, s.far)
	require.Equal(t, 10*(tryEvery-1), s.virtual(10*tryEvery, farCores))

	s.virtual(tryEvery, nearCores)
	require.False(t, s.far)
}

// A rank that loses its core during a copy learns nothing.
func TestStagingInterrupted(t *testing.T) {
	for _, cores := range []func(int, bool) time.Duration{nearCores, farCores} {
		var s staging
		interrupted := func(i int, past bool) time.Duration {
			if i%3 != 0 {
				return time.Second
			}
			return cores(i, past)
		}
		s.virtual(20*tryEvery, interrupted)
		want := cores(0, false) != cores(0, true)
		for range tryEvery {
			s.virtual(1, interrupted)
			require.Equal(t, want, s.far)
		}
	}
}

// Calls of 32 KiB or more time some of their copies, but no short ones.
func TestStagingOfCalls(t *testing.T) {
	if loadTicks(new(uint64)) == 0 {
		t.Skip("this processor's counter is not used, so ranks are never far")
	}
	ranks := newHost(t, 3)
	reduce := func(elements int) {
		var all sync.WaitGroup
		for _, p := range ranks {
			all.Go(func() { assert.NoError(t, p.AllReduce(p.sum(make([]int64, elements)))) })
		}
		all.Wait()
	}
	reduce(stagingLeast/8 - 1)
	for _, p := range ranks {
		require.Zero(t, p.staging.bytes)
	}
	for range 3 * timeEvery / stagingLeast {
		reduce(stagingLeast / 8)
	}
	for _, p := range ranks {
		require.EqualValues(t, 3, p.staging.timed)
	}

	s := staging{bytes: timeEvery}
	require.False(t, s.due(timedLeast-1))
	require.True(t, s.due(timedLeast))
	require.False(t, s.due(timedLeast))
}
