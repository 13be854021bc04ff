package shm

import (
	"math/rand/v2"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// A non-temporal copy copies just its bytes, wherever they begin and end in their lines.
func TestMoveStream(t *testing.T) {
	from := make([]byte, 1000)
	for i := range from {
		from[i] = byte(rand.Uint32())
	}
	for n := 1; n < 400; n++ {
		for _, at := range []int{0, 1, 15, 16, 33, 63, 64} {
			got, want := make([]byte, 600), make([]byte, 600)
			source := from[n%70:]
			moveStream(&got[at], &source[0], n)
			copy(want[at:], source[:n])
			require.Equal(t, want, got, "%d bytes to %d", n, at)
		}
	}
}

// Ranks are far if most of the last samples say so. Single ones, from interrupts or lucky
// guesses of the processor, change nothing.
func TestDistance(t *testing.T) {
	d := distance{late: 350}
	see := func(n int, ticks uint64) {
		for range n {
			d.sample(ticks)
		}
	}
	see(100, 140)
	require.False(t, d.far)
	see(samples/2, 5000)
	require.False(t, d.far)
	see(1, 380)
	require.True(t, d.far)
	see(samples/2-1, 140)
	require.True(t, d.far)
	see(1, 349)
	require.False(t, d.far)
}

// Whatever other calls a step makes, every fourth call of 2 KB or more is measured. Shorter
// ones are not.
func TestDistanceSamples(t *testing.T) {
	ranks := newHost(t, 2)
	for _, p := range ranks {
		p.distance.late = 1 // any time is late
	}
	reduce := func(elements, times int) {
		var all sync.WaitGroup
		for _, p := range ranks {
			all.Go(func() {
				for range times {
					assert.NoError(t, p.AllReduce(p.sum(make([]int64, elements))))
				}
			})
		}
		all.Wait()
	}
	reduce(10, 100)
	require.Zero(t, ranks[0].distance.recent, "short calls")
	for range samples * sampleEvery {
		reduce(10, 1)
		reduce(300, 1)
		reduce(10, 2)
	}
	for _, p := range ranks {
		require.Equal(t, samples*sampleEvery, p.distance.calls)
		if loadTicks(new(uint64)) != 0 {
			require.True(t, p.distance.far)
		}
	}
	reduce(2500, sampleEvery)
	require.Equal(t, (samples+1)*sampleEvery, ranks[0].distance.calls, "staged calls count, too")
	reduce(stagingLeast/8, sampleEvery)
	require.Equal(t, (samples+1)*sampleEvery, ranks[0].distance.calls, "longer calls time their copies")
}

// A line from memory takes longer than one from a cache, if this processor can be asked.
func TestLoadTicks(t *testing.T) {
	word := uint64(7)
	if loadTicks(&word) == 0 {
		t.Skip("this processor's counter is not used")
	}
	var d distance
	d.calibrate(&word)
	least := loadTicks(&word)
	for range 100 {
		least = min(least, loadTicks(&word))
	}
	require.Less(t, least, d.late)
	require.EqualValues(t, 7, word)
}
