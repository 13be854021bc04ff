package schedule

import (
	"math"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

// measureVirtual measures links of the given cost in virtual time. noise says by how
// much each trial is slower.
func measureVirtual(link Cost, agree time.Duration, noise func(trial int) float64) (found Cost, elapsed, longest time.Duration) {
	s := NewLinkSearch(LinkBound)
	elapsed, longest = s.inVirtualTime(link, agree, func(trial, _ int) float64 { return noise(trial) })
	return s.Cost(), elapsed, longest
}

// inVirtualTime makes all trials. Agreeing on the time of one takes as long as agree says.
func (s *LinkSearch) inVirtualTime(link Cost, agree time.Duration, noise func(trial, bytes int) float64) (elapsed, longest time.Duration) {
	for trial := 0; ; trial++ {
		bytes, more := s.Next(elapsed)
		if !more {
			return elapsed, longest
		}
		took := link.Latency + float64(bytes)*link.PerByte
		if bytes == 0 {
			took = LatencyRounds * link.Latency
		}
		took *= noise(trial, bytes)
		all := time.Duration(Messages(bytes))*time.Duration(took) + agree
		longest = max(longest, all)
		elapsed += all
		s.Measured(time.Duration(took), elapsed)
	}
}

func TestLinkSearch(t *testing.T) {
	quiet := func(int) float64 { return 1 }
	for name, link := range map[string]Cost{
		"100 Mbit/s":          {Latency: 150_000, PerByte: 80},
		"1 Gbit/s":            {Latency: 60_000, PerByte: 8},
		"10 Gbit/s":           {Latency: 25_000, PerByte: .8},
		"loopback":            {Latency: 5_000, PerByte: .24},
		"10 Mbit/s, 20 ms":    {Latency: 20e6, PerByte: 800},
		"another continent":   {Latency: 70e6, PerByte: 8},
		"slower than a modem": {Latency: 100e6, PerByte: 200_000},
	} {
		got, took, longest := measureVirtual(link, 100*time.Microsecond, quiet)
		require.InEpsilon(t, link.Latency, got.Latency, .06, name)
		require.InEpsilon(t, link.PerByte, got.PerByte, .06, name)
		require.Less(t, took, LinkBound+2*longest, name)
		require.Equal(t, Network.Fold, got.Fold)
	}
	got, _, _ := measureVirtual(Cost{Latency: 60_000, PerByte: 8}, 0, func(trial int) float64 {
		if trial == 1 || trial == 5 {
			return 10
		}
		return 1
	})
	require.InEpsilon(t, 60_000, got.Latency, .06, "single trials that other load slows down do not count")
	require.InEpsilon(t, 8., got.PerByte, .06)
}

// The first message of a size is slow, because windows grow. A search leaves room for another.
func TestLinkSearchTriesASizeTwice(t *testing.T) {
	link, seen := Cost{Latency: 130_000, PerByte: 1.6}, map[int]bool{0: true}
	s := NewLinkSearch(LinkBound / 5)
	s.inVirtualTime(link, 300*time.Microsecond, func(_, bytes int) float64 {
		if seen[bytes] {
			return 1
		}
		seen[bytes] = true
		return 4
	})
	require.InEpsilon(t, link.PerByte, s.Cost().PerByte, .06)
}

// A link of 100 Mbit/s saves up to 64 KiB of tokens while nothing is sent.
func TestLinkSearchWithoutSavedTokens(t *testing.T) {
	const perByte, burst, agree = 80., 64 << 10, 4e6
	s, now, tokens := NewLinkSearch(LinkBound*3/5), 0., float64(burst)
	for {
		bytes, more := s.Next(time.Duration(now))
		if !more {
			break
		}
		took := 0.
		for range Messages(bytes) {
			took = 1e5 + max(0, float64(bytes)-tokens)*perByte
			tokens = max(0, tokens-float64(bytes))
			now += took
		}
		if bytes == 0 {
			took *= LatencyRounds
		}
		now += agree
		tokens = min(burst, tokens+agree/perByte)
		s.Measured(time.Duration(took), time.Duration(now))
	}
	require.InEpsilon(t, perByte, s.Cost().PerByte, .06)
}

// While latency takes most of the time, larger messages take hardly longer.
func TestLinkSearchGrowsDespiteLatency(t *testing.T) {
	s := NewLinkSearch(LinkBound * 3 / 5)
	s.inVirtualTime(Cost{Latency: 1_400_000, PerByte: 80}, 4*time.Millisecond, func(_, _ int) float64 { return 1 })
	require.Equal(t, 64<<10, s.size, "16 KB take less time than latency varies by")
}

// However slow the links, the trials end soon after the bound, and the cost is finite.
func TestLinkSearchEnds(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		link := Cost{Latency: math.Exp(rapid.Float64Range(0, 20).Draw(t, "latency")), PerByte: math.Exp(rapid.Float64Range(-10, 12).Draw(t, "per byte"))}
		noise := rapid.SliceOfN(rapid.Float64Range(1, 100), 1, 9).Draw(t, "noise")
		c, took, longest := measureVirtual(link, time.Duration(rapid.IntRange(0, 1e7).Draw(t, "agree")), func(trial int) float64 { return noise[trial%len(noise)] })
		require.Less(t, took, LinkBound+2*longest)
		require.False(t, math.IsNaN(c.Latency+c.PerByte) || math.IsInf(c.Latency+c.PerByte, 0))
		require.GreaterOrEqual(t, c.PerByte, 0.)
	})
}

// A size begins without the disturbed trials of the one before.
func TestLinkSearchForgetsDisturbedTrials(t *testing.T) {
	s, trials := NewLinkSearch(LinkBound), map[int]int{}
	s.inVirtualTime(Cost{Latency: 25_000, PerByte: .8}, 0, func(_, bytes int) float64 {
		if trials[bytes]++; bytes == firstTrial && trials[bytes] == 1 {
			return 800
		}
		return 1
	})
	require.Equal(t, 2, trials[firstTrial])
	require.Equal(t, bandwidthTrials, trials[MostTrial])
}

// Latency is measured, however late the search begins.
func TestLinkSearchBeginsLate(t *testing.T) {
	s := NewLinkSearch(LinkBound)
	bytes, more := s.Next(2 * LinkBound)
	require.Zero(t, bytes)
	require.True(t, more)
	s.Measured(LatencyRounds*100, 2*LinkBound)
	bytes, more = s.Next(2 * LinkBound)
	require.Equal(t, firstTrial, bytes)
	require.True(t, more)
}

// The time of bytes is that of the fastest long trial without the latency: at first, if there were
// few trials, but not if that was longer than the trial.
func TestLinkSearchCost(t *testing.T) {
	const us = time.Microsecond
	for _, c := range []struct {
		first   time.Duration
		long    []time.Duration
		latency float64
		perByte float64
	}{
		{300 * us, []time.Duration{1000 * us}, 200_000, 70},
		{300 * us, []time.Duration{1000 * us, 1000 * us, 1000 * us}, 200_000, 80},
		{900 * us, []time.Duration{1000 * us, 1100 * us}, 200_000, 60},
		{900 * us, []time.Duration{350 * us}, 200_000, 15},
	} {
		s := &LinkSearch{size: 10_000, latency: []time.Duration{c.first, 2 * c.first}, quickest: c.long[0], long: c.long, settled: []time.Duration{200 * us}}
		require.Equal(t, Cost{Latency: c.latency, PerByte: c.perByte, Fold: Network.Fold}, s.Cost(), "%+v", c)
	}
}

func TestRoundedCost(t *testing.T) {
	c := Cost{Latency: 61_499, PerByte: 8.0501, Fold: 1}.rounded()
	require.InDelta(t, 61_000, c.Latency, 1e-9)
	require.InDelta(t, 8.1, c.PerByte, 1e-9)
	require.Equal(t, 1., c.Fold)
	require.Equal(t, Cost{}, Cost{}.rounded())
}

// Ranks may be slow when they begin. Latency is measured again at the end, if there is time, and
// is not longer than any message took.
func TestLinkSearchBeginsSlowly(t *testing.T) {
	link := Cost{Latency: 200_000, PerByte: 8}
	for _, slow := range []int{1, 2, 3} {
		s := NewLinkSearch(LinkBound * 3 / 5)
		s.inVirtualTime(link, 300*time.Microsecond, func(trial, _ int) float64 {
			if trial < slow {
				return 20
			}
			return 1
		})
		require.LessOrEqual(t, s.Cost().Latency, 240_000., "%d slow trials", slow) // a message of 4 KB
		require.InEpsilon(t, link.PerByte, s.Cost().PerByte, .06, "%d slow trials", slow)
	}
}
