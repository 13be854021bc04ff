package ticks

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// Moments that are noted as ticks are the moments of package time.
func TestMomentsAgree(t *testing.T) {
	origin := time.Now().Add(-time.Hour)
	for name, counter := range map[string]bool{"counter": useCounter(), "package time": false} {
		t.Run(name, func(t *testing.T) {
			c := &Clock{origin: origin, counter: counter}
			c.start = c.pair()
			var noted []Ticks
			var before, after []time.Duration
			for range 100 {
				before = append(before, time.Since(origin))
				noted = append(noted, c.Now())
				after = append(after, time.Since(origin))
				for begin := time.Now(); time.Since(begin) < 100*time.Microsecond; {
				}
			}
			r := c.Read()
			last := time.Duration(0)
			for i, x := range noted {
				at := r.At(x)
				// A pair of clocks is read within a few microseconds unless the machine is loaded.
				const most = time.Millisecond
				require.Greater(t, at, before[i]-most)
				require.Less(t, at, after[i]+most)
				require.GreaterOrEqual(t, at, last, "in order")
				last = at
			}
			require.LessOrEqual(t, last, r.Now())
		})
	}
}

// A Reading gives no moment a time after its own, and a new Clock no infinite rate.
func TestReading(t *testing.T) {
	r := Reading{pair: pair{ticks: 3000, now: time.Second}, rate: .5}
	require.Equal(t, time.Second, r.At(3000))
	require.Equal(t, time.Second, r.At(4000), "the counter of another core, a little ahead")
	require.Equal(t, time.Second-500, r.At(2000))
	c := &Clock{origin: time.Now()}
	c.start = pair{ticks: 1 << 62}
	r = c.Read()
	require.LessOrEqual(t, r.At(r.ticks-1), r.Now())
}

func BenchmarkNow(b *testing.B) {
	origin := time.Now()
	b.Run("ticks", func(b *testing.B) {
		c := New(origin)
		for range b.N {
			c.Now()
		}
	})
	b.Run("time", func(b *testing.B) {
		for range b.N {
			_ = time.Since(origin)
		}
	})
}
