package collective

import (
	"bytes"
	"runtime"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"
)

// Other goroutines run in the middle of a long copy.
func TestCopyLong(t *testing.T) {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(1))
	var turns atomic.Int64
	var stop atomic.Bool
	started, ended := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(ended)
		close(started)
		for ; !stop.Load(); runtime.Gosched() {
			turns.Add(1)
		}
	}()
	<-started
	for _, n := range []int{0, 1, copiedAtOnce, copiedAtOnce + 1, 16*copiedAtOnce + 5} {
		src := bytes.Repeat([]byte{1, 2, 3}, n/3+1)[:n]
		dst := make([]byte, n)
		before := turns.Load()
		copyLong(dst, src)
		require.GreaterOrEqual(t, turns.Load()-before, int64(n)/copiedAtOnce/4, n) // the scheduler is not always fair
		require.Equal(t, src, dst)
	}
	stop.Store(true)
	<-ended
}
