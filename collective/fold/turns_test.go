package fold

import (
	"bytes"
	"runtime"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"
)

// Other goroutines run in the middle of a long copy.
func TestCopyTakesTurns(t *testing.T) {
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
	for name, copyBytes := range map[string]func(dst, src []byte){"Copy": Copy, "CopyPast": CopyPast} {
		for _, n := range []int{0, 1, copyTurn, copyTurn + 1, 16*copyTurn + 5} {
			src := bytes.Repeat([]byte{1, 2, 3}, n/3+1)[:n]
			dst := make([]byte, n)
			before := turns.Load()
			copyBytes(dst, src)
			require.GreaterOrEqual(t, turns.Load()-before, int64(n)/copyTurn/4, "%s of %d bytes", name, n) // the scheduler is not always fair
			require.Equal(t, src, dst)
		}
	}
	stop.Store(true)
	<-ended
}
