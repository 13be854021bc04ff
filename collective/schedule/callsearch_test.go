package schedule

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

// timeVirtual times calls in virtual time. call returns how long one takes.
func timeVirtual(s *CallSearch, elapsed time.Duration, call func(bytes int) time.Duration) (end time.Duration, calls int) {
	return timeRivals(s, elapsed, func(bytes int, _ Rival) time.Duration { return call(bytes) })
}

func timeRivals(s *CallSearch, elapsed time.Duration, call func(bytes int, way Rival) time.Duration) (end time.Duration, calls int) {
	for {
		bytes, way, more := s.Next(elapsed)
		if !more {
			return elapsed, calls
		}
		took := call(bytes, way)
		elapsed += took
		s.Measured(took)
		calls++
	}
}

func TestCallSearch(t *testing.T) {
	s := NewCallSearch(&Situation{Hosts: []int{0, 1}})
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
	require.Equal(t, tinyCall, s.Samples()[0].Bytes)
	require.Equal(t, 2*callRuns, seen[64<<10], "all sizes once more")
	require.Equal(t, callRuns+int(againBound/(256<<10/4)), seen[256<<10]-1, "as long as that takes little time")
	require.Equal(t, 3, seen[16<<20])
	require.Equal(t, mostCall, s.Samples()[MostSamples-1].Bytes)

	for ranks, largest := range map[int]int{1: mostCall, 2: hostCalls / 2, 4: hostCalls / 4, 16: coarse, 64: coarse} {
		crowd := NewCallSearch(&Situation{Hosts: make([]int, ranks)}) // on one host
		timeVirtual(crowd, 0, func(int) time.Duration { return 1 })
		require.Equal(t, largest, crowd.Samples()[len(crowd.Samples())-1].Bytes, "all ranks of a host need the memory")
	}

	slow := NewCallSearch(&Situation{Hosts: []int{0, 1}})
	end, _ = timeVirtual(slow, 40*time.Millisecond, func(bytes int) time.Duration { return time.Duration(100 * bytes) })
	require.Less(t, end, LinkBound)
	require.Equal(t, 256<<10, slow.Samples()[len(slow.Samples())-1].Bytes)
}

// The first call of a size may take much longer with what surrounds it, because its memory is
// new. So the search does not grow if that would take more time than is left. The second may be slow,
// too, so sizes that were timed only twice are timed more often at the end.
func TestCallSearchInNewMemory(t *testing.T) {
	s, now, seen := NewCallSearch(&Situation{Hosts: make([]int, 2), Shared: true}), time.Duration(0), map[int]int{}
	for {
		bytes, _, more := s.Next(now)
		if !more {
			break
		}
		took := time.Duration(bytes / 8)
		if seen[bytes]++; seen[bytes] <= 2 {
			took *= 2
		}
		now += 3 * took // with the vectors written and read
		if seen[bytes] == 1 {
			now += time.Duration(2 * bytes)
		}
		s.Measured(took)
	}
	require.Less(t, now, LinkBound)
	require.Equal(t, 8<<20, s.samples[len(s.samples)-1].Bytes)
	for _, sample := range s.samples[1 : len(s.samples)-1] {
		require.Equal(t, time.Duration(sample.Bytes/8), sample.Took, "%d bytes", sample.Bytes)
	}
}

// Ranks may share a core at first. That does not show in the times.
func TestCallSearchAfterASlowStart(t *testing.T) {
	for _, shared := range []bool{false, true} {
		s, now := NewCallSearch(&Situation{Hosts: []int{0, 0}, Shared: shared}), time.Duration(0)
		usual := func(bytes int) time.Duration { return 10*time.Microsecond + time.Duration(bytes/8) }
		for {
			bytes, _, more := s.Next(now)
			if !more {
				break
			}
			took := usual(bytes)
			if now < 3*time.Millisecond {
				took *= 20
			}
			now += took
			s.Measured(took)
		}
		for _, sample := range s.Samples() {
			require.Equal(t, usual(sample.Bytes), sample.Took, "%d bytes", sample.Bytes)
		}
	}
}

// Between hosts, the only call of the largest size does not count if it was slow.
func TestCallSearchOnlyCall(t *testing.T) {
	for slow, want := range map[float64]int{1: 256 << 10, 1.2: 256 << 10, 1.3: 64 << 10} {
		s := NewCallSearch(&Situation{Hosts: []int{0, 1}})
		timeVirtual(s, 40*time.Millisecond, func(bytes int) time.Duration {
			took := time.Duration(90 * bytes)
			if bytes == 256<<10 {
				took = time.Duration(slow * float64(took))
			}
			return took
		})
		require.Len(t, s.times[4][0], 1)
		require.Equal(t, want, s.Samples()[len(s.Samples())-1].Bytes, "%g times as long", slow)
	}
}

// A slow first call does not count, and where ranks that share memory may share cores, not one lucky
// call either.
func TestCallSearchTypicalTime(t *testing.T) {
	for _, c := range []struct {
		ranks  int
		shared bool
		took   []time.Duration // of calls so long that each size is timed four times
		want   time.Duration
	}{
		{2, false, []time.Duration{9, 5, 4, 6}, 4},
		{2, true, []time.Duration{9, 5, 4, 6}, 4},
		{3, false, []time.Duration{9, 5, 4, 6}, 4},
		{3, true, []time.Duration{9, 5, 4, 6}, 5},
	} {
		s, n := NewCallSearch(&Situation{Hosts: make([]int, c.ranks), Shared: c.shared}), 0
		timeVirtual(s, 0, func(bytes int) time.Duration {
			if bytes > smallCall {
				return time.Second // ends the search
			}
			n++
			return c.took[min(n, len(c.took))-1] * time.Millisecond / 5
		})
		require.Equal(t, len(c.took), n)
		require.Equal(t, c.want*time.Millisecond/5, s.Samples()[0].Took)
		require.Equal(t, smallCall, s.Samples()[0].Bytes, "there was no time for tinyCall")
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

// On one host, a search reserves time for tinyCall, however long the other calls take. Between
// hosts, a larger call matters more.
func TestCallSearchReservesTime(t *testing.T) {
	for _, c := range []struct {
		hosts []int
		want  bool
	}{{[]int{0, 0}, true}, {[]int{0, 1}, false}} {
		s, tiny := NewCallSearch(&Situation{Hosts: c.hosts}), false
		timeVirtual(s, LinkBound-3*time.Millisecond, func(bytes int) time.Duration {
			tiny = tiny || bytes == tinyCall
			return time.Millisecond / 2
		})
		require.Equal(t, c.want, tiny, "%v", c.hosts)
	}
}

// Rivals that were timed only once are not compared.
func TestRivalsNeedTime(t *testing.T) {
	s := NewCallSearch(&Situation{Hosts: make([]int, 4)})
	calls := map[Method]int{}
	timeRivals(s, 0, func(bytes int, way Rival) time.Duration {
		switch {
		case bytes < 16<<10:
			return 1
		case way == Rival{}:
			return 30 * time.Millisecond
		}
		calls[way.Method]++
		return 20 * time.Millisecond
	})
	require.Equal(t, map[Method]int{Collected: 1, Direct: 1}, calls)
	require.Zero(t, s.Samples()[len(s.Samples())-1].Rival)
}

// The calls at the end are made as the fastest were, and count for those.
func TestRivalsAreRepeated(t *testing.T) {
	s := NewCallSearch(&Situation{Hosts: make([]int, 4)})
	const us = time.Microsecond
	calls := 0
	timeRivals(s, 0, func(bytes int, way Rival) time.Duration {
		switch {
		case bytes != 64<<10:
			return time.Duration(bytes / 8)
		case way.Method != Collected:
			return 200 * us
		}
		if calls++; calls > mostTurns {
			return 100 * us
		}
		return 150 * us
	})
	require.Greater(t, calls, mostTurns)
	for _, sample := range s.Samples() {
		if sample.Bytes == 64<<10 {
			require.Equal(t, Sample{64 << 10, 100 * us, Rival{Method: Collected}}, sample)
		}
	}
}

// Where several methods are good, calls are timed by each in turn, and the fastest is used
// for vectors of about that size.
func TestRivals(t *testing.T) {
	s := Situation{Hosts: make([]int, 4), Links: Links{Near: Loopback}}
	const us = time.Microsecond
	took := map[int]map[Method]time.Duration{ // 0 is the planned method
		16 << 10: {0: 70 * us, Collected: 65 * us, Direct: 90 * us}, // gains too little
		64 << 10: {0: 170 * us, Bruck: 150 * us, Collected: 140 * us},
		1 << 20:  {0: 900 * us, Ring: 820 * us},
	}
	var order []Method
	seen := map[int]map[Method]int{}
	search := NewCallSearch(&s)
	end, _ := timeRivals(search, 20*time.Millisecond, func(bytes int, way Rival) time.Duration {
		require.Zero(t, way.Segment)
		m := way.Method
		if seen[bytes] == nil {
			seen[bytes] = map[Method]int{}
		}
		seen[bytes][m]++
		if bytes == 64<<10 {
			order = append(order, m)
		}
		if times, ok := took[bytes]; ok {
			return times[m]
		}
		require.Zero(t, m, "%d bytes", bytes)
		return time.Duration(bytes)
	})
	require.Less(t, end, LinkBound)
	require.Equal(t, []Method{0, Bruck, Collected, Collected, Bruck, 0, 0}, order[:7])
	for bytes, times := range took {
		for m := range times {
			require.GreaterOrEqual(t, seen[bytes][m], leastTurns, "%d bytes, %v", bytes, m)
		}
	}
	s.Calls = search.Samples()
	require.NoError(t, s.Links.Check())
	for bytes, want := range map[int]Method{
		16 << 10: Bruck, 32 << 10: Bruck, 32<<10 + 1024: Collected, 64 << 10: Collected, 96<<10 - 1024: Collected, 96 << 10: Direct,
		512<<10 - 1024: Direct, 512 << 10: Ring, 1 << 20: Ring, 3<<19 - 1024: Ring, 3 << 19: Direct, 4 << 20: Direct, 64 << 20: Direct,
	} {
		p := s.Plan(bytes/4, 4, true)
		require.Equal(t, want, p.Method, "%d bytes", bytes)
		require.Equal(t, want == Ring, p.Ahead == RingAhead)
	}
	require.Equal(t, Direct, s.Plan(1<<19, 2, false).Method, "partial results do not fit into 16 bits")
	require.Equal(t, 140*us, s.Predict(s.Plan(16<<10, 4, true), 16<<10, 4))
	s.Calls[2].Method = Halving
	require.ErrorContains(t, s.Links.Check(), "halving-doubling was not measured")

	for _, none := range []Situation{{Hosts: []int{0}}, {Hosts: []int{0, 0}}, {Hosts: []int{0, 0, 1}}, {Hosts: make([]int, 9)}, {Hosts: make([]int, 4), Shared: true}} {
		require.Empty(t, none.rivals(64<<10), "%v", none.Hosts)
	}
}

// Two ranks of one host time longer messages, too.
func TestLongMessagesOfPairs(t *testing.T) {
	const planned, long = mostPair, longPair
	for name, c := range map[string]struct {
		gain map[int]float64 // by size, of long messages
		want map[int]int     // bytes per message, by size
	}{
		"large caches": {map[int]float64{1 << 20: .8, 2 << 20: .8}, map[int]int{512 << 10: leastPair, 768 << 10: long, 1 << 20: long, 64 << 20: long}},
		"small caches": {map[int]float64{1 << 20: 1.1, 2 << 20: 1.4}, map[int]int{1 << 20: planned, 2 << 20: planned, 64 << 20: planned}},
		"between":      {map[int]float64{1 << 20: .8, 2 << 20: 1.1}, map[int]int{1 << 20: long, 1400 << 10: planned, 2 << 20: planned, 64 << 20: planned}},
		"little gain":  {map[int]float64{1 << 20: .98, 2 << 20: .98}, map[int]int{1 << 20: planned, 2 << 20: planned}},
	} {
		s := Situation{Hosts: []int{0, 0}, Links: Links{Near: Loopback}}
		search := NewCallSearch(&s)
		timeRivals(search, 0, func(bytes int, way Rival) time.Duration {
			took := float64(bytes) / 4
			if bytes > 2<<20 {
				require.Equal(t, c.want[64<<20] == long, way == Rival{Ring, long}, "%s: longer calls are made as planned then", name)
			} else if way != (Rival{}) {
				require.Equal(t, Rival{Ring, long}, way)
				took *= c.gain[bytes]
			}
			return time.Duration(took)
		})
		s.Calls = search.Samples()
		require.NoError(t, s.Links.Check())
		require.Equal(t, s.Links, LinksOf(s.Links.Words()))
		for bytes, segment := range c.want {
			p := s.Plan(bytes/4, 4, true)
			require.Equal(t, Ring, p.Method)
			require.Equal(t, RingAhead, p.Ahead)
			require.Equal(t, segment/4, p.Segment, "%s, %d bytes", name, bytes)
		}
		require.Equal(t, Direct, s.Plan(1<<19, 2, false).Method, "partial results do not fit into 16 bits")
	}
	wrong := Links{Calls: []Sample{{1 << 20, 1, Rival{Ring, 1 << 20}}}}
	require.ErrorContains(t, wrong.Check(), "messages of 1048576 bytes were not measured")
}

// Predictions are what calls took, interpolated; the model only compares plans.
func TestPredictFromCalls(t *testing.T) {
	s := Situation{Hosts: []int{0, 0}, Links: Links{Near: Loopback, Calls: []Sample{{1 << 20, 200_000, Rival{}}, {4 << 20, 1_400_000, Rival{}}, {16 << 20, 6_000_000, Rival{}}}}}
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
	require.InDelta(t, 100_000_000*(1+3*mostSlope), predict(64<<20), 2)
	s.Calls[2].Took, s.Shared = 3_000_000, false

	far := Situation{Hosts: []int{0, 1}, Links: Links{Far: Network, Calls: []Sample{{4 << 10, 400_000, Rival{}}, {64 << 10, 410_000, Rival{}}}}}
	want := 410_000 + leastBetween*Network.PerByte*(960<<10)
	require.InDelta(t, want, far.Predict(far.Plan(1<<18, 4, true), 1<<18, 4), 2, "a queue took the messages of both samples")
	far.Calls[1].Took = 4_000_000
	want = 4_000_000 + mostBetween*Network.PerByte*(960<<10)
	require.InDelta(t, want, far.Predict(far.Plan(1<<18, 4, true), 1<<18, 4), 2)
	uncalled := Situation{Hosts: far.Hosts, Links: Links{Far: Network}}
	require.Equal(t, uncalled.Predict(far.Plan(1, 4, true), 1, 4), far.Predict(far.Plan(1, 4, true), 1, 4), "calls say nothing of smaller ones")

	few := Situation{Hosts: []int{0, 0}, Links: Links{Near: Loopback, Calls: []Sample{{tinyCall, 6_000, Rival{}}, {smallCall, 7_023, Rival{}}}}}
	require.InDelta(t, 6_000, few.Predict(few.Plan(1, 4, true), 1, 4), 2)
	require.InDelta(t, 6_255, few.Predict(few.Plan(256, 4, true), 256, 4), 2)
	model := Situation{Hosts: few.Hosts, Links: Links{Near: Loopback}}
	require.Equal(t, model.Predict(model.Plan(1<<18, 4, true), 1<<18, 4), few.Predict(few.Plan(1<<18, 4, true), 1<<18, 4), "two small calls do not tell what a byte costs")

	plan := s.Plan(1<<18, 4, true)
	other := Plan{Method: Halving, Segment: plan.Segment}
	with := float64(s.Predict(other, 1<<18, 4)) / float64(s.Predict(plan, 1<<18, 4))
	for _, chosen := range []Situation{{Force: OneShot}, {Table: Only(2, OneShot, SegmentBytes)}} {
		chosen.Hosts, chosen.Links = s.Hosts, s.Links
		require.Equal(t, s.Predict(plan, 1<<18, 4), chosen.Predict(plan, 1<<18, 4), "the calls were timed before the method was chosen")
	}
	s.Calls = nil
	require.InEpsilon(t, float64(s.Predict(other, 1<<18, 4))/float64(s.Predict(plan, 1<<18, 4)), with, 1e-3, "plans compare as in the model")
}
