package schedule

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

// timeVirtual times calls in virtual time. call returns how long one takes.
func timeVirtual(s *CallSearch, elapsed time.Duration, call func(bytes int) time.Duration) (end time.Duration, calls int) {
	return timeRivals(s, elapsed, func(bytes int, _ bool) time.Duration { return call(bytes) })
}

func timeRivals(s *CallSearch, elapsed time.Duration, call func(bytes int, rival bool) time.Duration) (end time.Duration, calls int) {
	for {
		bytes, rival, more := s.Next(elapsed)
		if !more {
			return elapsed, calls
		}
		took := call(bytes, rival)
		elapsed += took
		s.Measured(took)
		calls++
	}
}

func TestCallSearch(t *testing.T) {
	s := NewCallSearch(&Situation{Hosts: []int{0, 0}})
	seen := map[int]int{}
	end, _ := timeVirtual(s, 0, func(bytes int) time.Duration {
		if seen[bytes]++; seen[bytes] == 1 {
			return time.Duration(bytes * 3 / 8) // the first call is slower
		}
		return time.Duration(bytes / 4)
	})
	require.Equal(t, MostSamples, len(s.Samples()))
	require.Less(t, end, LinkBound)
	for i, sample := range s.Samples() {
		require.True(t, i == 0 || sample.Bytes > s.Samples()[i-1].Bytes)
		if runs := seen[sample.Bytes]; runs > 1 {
			require.Equal(t, time.Duration(sample.Bytes/4), sample.Took)
		}
	}
	require.Equal(t, callRuns, seen[64<<10])
	require.Equal(t, 3, seen[16<<20], "long ones once more")
	require.Equal(t, mostCall, s.Samples()[MostSamples-1].Bytes)

	crowd := NewCallSearch(&Situation{Hosts: make([]int, 64)}) // on one host
	timeVirtual(crowd, 0, func(int) time.Duration { return 1 })
	require.Equal(t, hostCalls/64, crowd.Samples()[len(crowd.Samples())-1].Bytes, "all ranks of a host need the memory")

	slow := NewCallSearch(&Situation{Hosts: []int{0, 1}})
	end, _ = timeVirtual(slow, 40*time.Millisecond, func(bytes int) time.Duration { return time.Duration(100 * bytes) })
	require.Less(t, end, LinkBound)
	require.Equal(t, 256<<10, slow.Samples()[len(slow.Samples())-1].Bytes)
}

// A slow first call does not count, and in shared memory not one lucky call either.
func TestCallSearchTypicalTime(t *testing.T) {
	for _, c := range []struct {
		shared bool
		took   []time.Duration // of calls so long that each size is timed four times
		want   time.Duration
	}{
		{false, []time.Duration{9, 5, 4, 6}, 4},
		{true, []time.Duration{9, 5, 4, 6}, 5},
	} {
		s, n := NewCallSearch(&Situation{Hosts: []int{0, 0}, Shared: c.shared}), 0
		timeVirtual(s, 0, func(bytes int) time.Duration {
			if bytes > firstCall {
				return time.Second // ends the search
			}
			n++
			return c.took[min(n, len(c.took))-1] * time.Millisecond / 4
		})
		require.Equal(t, len(c.took), n)
		require.Equal(t, c.want*time.Millisecond/4, s.Samples()[0].Took)
	}
}

// However long calls take, the search ends soon after the bound.
func TestCallSearchEnds(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		took := rapid.SliceOfN(rapid.Int64Range(0, 1e9), 1, 40).Draw(t, "took")
		hosts := rapid.SampledFrom([][]int{{0, 0, 1}, {0, 0, 0}}).Draw(t, "hosts")
		s, longest, n := NewCallSearch(&Situation{Hosts: hosts}), time.Duration(0), 0
		began := time.Duration(rapid.Int64Range(0, 2e8).Draw(t, "began"))
		end, _ := timeVirtual(s, began, func(int) time.Duration {
			n++
			longest = max(longest, time.Duration(took[n%len(took)]))
			return time.Duration(took[n%len(took)])
		})
		require.Less(t, end, max(began, LinkBound)+longest+1)
		require.NoError(t, Links{Calls: s.Samples()}.Check())
	})
}

// Where direct and the ring are both good, calls are timed by each in turn, and the faster
// one is used for vectors of about that size.
func TestRivals(t *testing.T) {
	s := Situation{Hosts: make([]int, 4), Links: Links{Near: Loopback}}
	require.True(t, s.HasRivals())
	search := NewCallSearch(&s)
	took := map[int][2]time.Duration{
		256 << 10: {300 * time.Microsecond, 290 * time.Microsecond}, // too little is gained
		1 << 20:   {time.Millisecond, 800 * time.Microsecond},
		4 << 20:   {6 * time.Millisecond, 7 * time.Millisecond},
	}
	seen := map[int]*[2]int{}
	var order []bool
	end, _ := timeRivals(search, 20*time.Millisecond, func(bytes int, rival bool) time.Duration {
		if seen[bytes] == nil {
			seen[bytes] = &[2]int{}
		}
		times, contested := took[bytes]
		require.True(t, contested || !rival, "%d bytes", bytes)
		method := 0
		if rival {
			method = 1
		}
		seen[bytes][method]++
		if bytes == 1<<20 {
			order = append(order, rival)
		}
		if !contested {
			return time.Duration(bytes)
		}
		return times[method]
	})
	require.Less(t, end, LinkBound)
	require.Equal(t, []bool{false, true, true, false, false, true, true, false}, order[:8])
	require.Equal(t, [2]int{2, 2}, [2]int{min(seen[4<<20][0], 2), seen[4<<20][1]}, "long calls twice by each")
	s.Calls = search.Samples()
	for _, c := range s.Calls {
		require.Equal(t, c.Bytes == 1<<20, c.Rival, "%d bytes", c.Bytes)
	}
	require.NoError(t, s.Links.Check())
	for bytes, want := range map[int]Method{256 << 10: Direct, 512<<10 - 1024: Direct, 512 << 10: Ring, 1 << 20: Ring, 2<<20 - 1024: Ring, 2 << 20: Direct, 64 << 20: Direct} {
		p := s.Plan(bytes/4, 4, true)
		require.Equal(t, want, p.Method, "%d bytes", bytes)
		require.Equal(t, want == Ring, p.Ahead == RingAhead)
		require.Equal(t, Direct, s.Plan(bytes/2, 2, false).Method, "partial results do not fit into 16 bits")
	}
	require.Equal(t, 800*time.Microsecond, s.Predict(s.Plan(1<<18, 4, true), 1<<18, 4))
	s.Rival = true
	require.Equal(t, Ring, s.Plan(64<<18, 4, true).Method)
	require.Equal(t, Bruck, s.Plan(1<<10, 4, true).Method, "small vectors have no rival")

	for _, hosts := range [][]int{{0}, {0, 0}, {0, 0, 1}, make([]int, 5)} {
		none := Situation{Hosts: hosts}
		require.False(t, none.HasRivals(), "%v", hosts)
	}
	s.Shared = true
	require.False(t, s.HasRivals())
}

// Predictions are what calls took, interpolated; the model only compares plans.
func TestPredictFromCalls(t *testing.T) {
	s := Situation{Hosts: []int{0, 0}, Links: Links{Near: Loopback, Calls: []Sample{{1 << 20, 200_000, false}, {4 << 20, 1_400_000, false}, {16 << 20, 6_000_000, false}}}}
	predict := func(bytes int) float64 { return float64(s.Predict(s.Plan(bytes/4, 4, true), bytes/4, 4)) }
	require.InDelta(t, 200_000, predict(1<<20), 2)
	require.InDelta(t, 600_000, predict(2<<20), 2)
	require.InDelta(t, 6_000_000, predict(16<<20), 2)
	require.InDelta(t, 24_400_000, predict(64<<20), 2, "by the last two")
	s.Calls[2].Took = 100_000_000
	require.InDelta(t, 100_000_000*(1+3*mostSlope), predict(64<<20), 2)
	s.Calls[1].Took, s.Calls[2].Took = 2_900_000, 3_000_000
	require.InDelta(t, 3_000_000+leastInside*Loopback.PerByte*(48<<20), predict(64<<20), 2, "the links carry every byte")
	s.Shared = true
	require.InDelta(t, 3_000_000*(1+3*leastShared), predict(64<<20), 2)
	s.Calls[2].Took = 100_000_000
	require.InDelta(t, 100_000_000*(1+3*mostSpilled), predict(64<<20), 2)
	s.Calls[2].Took, s.Shared = 3_000_000, false
	shared := Situation{Hosts: make([]int, 4), Shared: true, Links: Links{Near: Loopback, Calls: []Sample{{2 << 20, 1_000_000, false}, {4 << 20, 4_000_000, false}}}}
	require.InDelta(t, 16*4_000_000, shared.Predict(shared.Plan(16<<20, 4, true), 16<<20, 4), 2, "16 MB of all ranks fill the caches")

	far := Situation{Hosts: []int{0, 1}, Links: Links{Far: Network, Calls: []Sample{{4 << 10, 400_000, false}, {64 << 10, 410_000, false}}}}
	want := 410_000 + leastBetween*Network.PerByte*(960<<10)
	require.InDelta(t, want, far.Predict(far.Plan(1<<18, 4, true), 1<<18, 4), 2, "a queue took the messages of both samples")
	far.Calls[1].Took = 4_000_000
	want = 4_000_000 + mostBetween*Network.PerByte*(960<<10)
	require.InDelta(t, want, far.Predict(far.Plan(1<<18, 4, true), 1<<18, 4), 2)

	plan := s.Plan(1<<18, 4, true)
	other := Plan{Method: Halving, Segment: plan.Segment}
	with := float64(s.Predict(other, 1<<18, 4)) / float64(s.Predict(plan, 1<<18, 4))
	s.Calls = nil
	require.InEpsilon(t, float64(s.Predict(other, 1<<18, 4))/float64(s.Predict(plan, 1<<18, 4)), with, 1e-3, "plans compare as in the model")
}
