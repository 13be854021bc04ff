package publish_test

import (
	"bytes"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ringtrain/ringtrain/collective/publish"
)

// A reader that sees a word also sees everything stored before it.
func TestPublishedInOrder(t *testing.T) {
	const rounds = 200_000
	var data, flag publish.Word
	var writer sync.WaitGroup
	writer.Go(func() {
		for i := range uint64(rounds) {
			data.Publish(i + 1)
			flag.Publish(i + 1)
		}
	})
	for seen := uint64(0); seen < rounds; {
		seen = flag.Load()
		require.GreaterOrEqual(t, data.Load(), seen)
	}
	writer.Wait()
}

// If two sides each store one word, call Fence and then load the other's word, at least
// one of them sees the other's store.
func TestFence(t *testing.T) {
	const rounds = 1 << 18
	var words, saw [2][]uint64
	for i := range 2 {
		words[i], saw[i] = make([]uint64, rounds), make([]uint64, rounds)
	}
	var both sync.WaitGroup
	for i := range 2 {
		both.Go(func() {
			for k := range rounds {
				publish.Store(&words[i][k], 1)
				publish.Fence()
				saw[i][k] = atomic.LoadUint64(&words[1-i][k])
			}
		})
	}
	both.Wait()
	for k := range rounds {
		require.False(t, saw[0][k] == 0 && saw[1][k] == 0, "round %d", k)
	}
}

// Prefetch changes nothing, and may be called for memory of any length.
func TestPrefetch(t *testing.T) {
	memory := make([]byte, 1000)
	for i := range memory {
		memory[i] = byte(i)
	}
	want := bytes.Clone(memory)
	for _, n := range []int{0, 1, 63, 64, 65, 128, 999, 1000} {
		publish.Prefetch(memory[:n])
		publish.Prefetch(memory[1000-n:])
	}
	publish.Prefetch(nil)
	require.Equal(t, want, memory)
}
