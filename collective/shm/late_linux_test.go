package shm_test

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ringtrain/ringtrain/collective"
	"github.com/ringtrain/ringtrain/collective/shm"
)

// lateBy is long enough for the other ranks to fall asleep.
const lateBy = 3 * time.Millisecond

// BenchmarkLateRank measures how long a call takes on a rank that calls late, while
// the others are asleep.
func BenchmarkLateRank(b *testing.B) {
	for _, c := range []struct {
		name     string
		bytes    int
		inArenas bool
	}{{"in place", 1 << 20, true}, {"in place", 4 << 20, true}, {"by copy", 1 << 20, false}, {"by read", 4 << 20, false}} {
		b.Run(fmt.Sprintf("%s/%d", c.name, c.bytes), func(b *testing.B) {
			const size = 2
			vectors := make([]collective.Vector, size)
			arenas := make([]*shm.Arenas, size)
			for r := range size {
				arenas[r] = new(shm.Arenas)
				defer arenas[r].Close()
				mem := make([]byte, c.bytes)
				if c.inArenas {
					var err error
					mem, err = arenas[r].Alloc(c.bytes)
					require.NoError(b, err)
				}
				var err error
				vectors[r], err = collective.OfBytes(mem, collective.Float32)
				require.NoError(b, err)
			}
			views, transports, errs := join(b, size, oneHost, func(r int) shm.Options { return shm.Options{Must: true, Arenas: arenas[r]} })
			var took []time.Duration
			done := make(chan error, size)
			for r := range size {
				require.NoError(b, errs[r])
				g := collective.NewGroup(views[r], collective.OverTransport(views[r], transports[r]), collective.Options{})
				defer g.Close()
				go func() {
					for range b.N {
						began := time.Now()
						for r == 0 && time.Since(began) < lateBy {
						}
						began = time.Now()
						if err := g.AllReduce(context.Background(), vectors[r], collective.Max); err != nil {
							done <- err
							return
						}
						if r == 0 {
							took = append(took, time.Since(began))
						}
					}
					done <- nil
				}()
			}
			for range size {
				require.NoError(b, <-done)
			}
			slices.Sort(took)
			b.ReportMetric(float64(took[len(took)/2].Nanoseconds())/1000, "us/late-call")
		})
	}
}
