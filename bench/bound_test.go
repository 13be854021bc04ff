package bench

import (
	"bytes"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// Bounds by hand: two parameters of 500,000 elements take 16 ms each on a link of 1 Gbit/s. Of
// 30 ms of compute, 10 are the forward pass; the second parameter's gradients are final after
// 20, and the first one's after 30.
func TestBounds(t *testing.T) {
	w := workloadOf(t, 30*time.Millisecond, 500_000, 500_000)
	const ms = 1e6
	for _, c := range []struct {
		system string
		n      int
		want   float64
	}{
		{"allreduce", 1, 30 * ms},
		{"allreduce", 2, (20 + 32) * ms},
		{"allreduce", 4, (20 + 48) * ms},
		{"local-sgd", 2, 30*ms + 32*ms/50},
		{"ps-async", 2, 64 * ms},
		{"ps-async", 1, 32 * ms},
		{"ps-peers", 2, 30 * ms},
		{"ps-peers", 4096, 32 * 4095 / 4096. * ms},
	} {
		require.InDelta(t, c.want, gigabit.bound(w, systemOf(c.system), c.n), 1, "%s, %d workers", c.system, c.n)
	}
	// Two servers hold a parameter each, in one bucket: all workers push 16 ms to each of them, and
	// pull as much.
	require.InDelta(t, (30+2*2*16)*ms, gigabit.bound(w, systemOf("ps-sync:2"), 2), 1)
}

// Compression changes how many bytes must travel.
func TestCompressedBounds(t *testing.T) {
	s := Scaling{Compute: "emulate:0s", Link: "1gbit", Lens: []int{1_000_000}, Trials: []Trial{{System: "allreduce", Workers: 2, Seconds: 1, Steps: 1}}}
	bound := func(compress string) float64 {
		s.Compress = compress
		return s.rows()[0].Bound
	}
	require.InDelta(t, 32, bound(""), .01)
	require.InDelta(t, 16, bound("bf16"), .01)
	require.InDelta(t, 8, bound("int8"), .2)
	s.Link = ""
	require.Zero(t, bound(""), "the rate is unknown")
	s.Link, s.Compute = "1gbit", "real"
	require.Zero(t, bound(""), "it is unknown when gradients are final")
}

// A table has a column of bounds if one is known.
func TestBoundColumn(t *testing.T) {
	s := Scaling{Compute: "emulate:10ms", Link: "1gbit", Lens: []int{1_000_000}, Steps: 2,
		Trials: []Trial{{System: "allreduce", Workers: 1, Seconds: .02, Steps: 2}, {System: "allreduce", Workers: 2, Seconds: .09, Steps: 2}}}
	var out bytes.Buffer
	require.NoError(t, s.Text(&out))
	require.Regexp(t, `(?m)^allreduce +1 .* 10\.00 +1\.00$`, out.String())
	require.Regexp(t, `(?m)^allreduce +2 .* 42\.00 +1\.07$`, out.String())
	s.Link = ""
	out.Reset()
	require.NoError(t, s.Text(&out))
	require.NotContains(t, out.String(), "bound")
}
