package launch

import (
	"os"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// A process that holds the pipe of an ended worker open and writes a little now and then does
// not keep its reader until afterlife has come.
func TestPatience(t *testing.T) {
	r, w, err := os.Pipe()
	require.NoError(t, err)
	defer r.Close()
	defer w.Close()
	more := make(chan struct{}, 1)
	var writer sync.WaitGroup
	writer.Go(func() {
		for range more {
			_, _ = w.Write([]byte{'x'})
		}
	})
	more <- struct{}{}
	var o output
	o.ended.Store(true)
	got := 0
	o.copy(r, time.Millisecond, func(p []byte) {
		got += len(p)
		if len(p) > 0 {
			more <- struct{}{}
		}
	})
	close(more)
	writer.Wait()
	require.Positive(t, got)
	require.Less(t, got, afterlife)
}
