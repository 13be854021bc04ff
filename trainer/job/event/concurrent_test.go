package event

import (
	"bytes"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// Events of several goroutines are whole lines, each in the order of its goroutine, with
// steps before the events that follow them.
func TestWriterIsConcurrent(t *testing.T) {
	const goroutines, each = 8, 100
	var text bytes.Buffer // the Writer serializes writes
	w := NewWriter(&text, time.Hour)
	var all sync.WaitGroup
	for g := range goroutines {
		all.Go(func() {
			for i := range each {
				if i%3 == 0 {
					w.Emit(&Eval{Step: i, Loss: float64(g)})
				} else {
					w.Emit(&Step{Step: i, Samples: g})
				}
			}
		})
	}
	all.Wait()
	w.Flush()
	next := map[int]int{}
	for line := range bytes.Lines(text.Bytes()) {
		var g, step int
		switch e := Decode(line, nil).(type) {
		case *Step:
			g, step = e.Samples, e.Step
		case *Eval:
			g, step = int(e.Loss), e.Step
		default:
			require.Fail(t, "not an event", "%q", line)
		}
		require.Equal(t, next[g], step)
		next[g]++
	}
	require.Len(t, next, goroutines)
	for _, n := range next {
		require.Equal(t, each, n)
	}
}
