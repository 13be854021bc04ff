package bench

import (
	"image/color"
	"math"
	"strconv"
	"testing"

	"github.com/stretchr/testify/require"
	"gonum.org/v1/plot"
	"pgregory.net/rapid"
)

func labels(ticks []plot.Tick) (all []string) {
	for _, t := range ticks {
		all = append(all, t.Label)
	}
	return all
}

func TestTicks(t *testing.T) {
	for _, c := range []struct {
		name      string
		ticks     func(low, high float64) []plot.Tick
		low, high float64
		want      []string
	}{
		{"from 0", niceTicks, 0, 6, []string{"0", "1", "2", "3", "4", "5", "6"}},
		{"multiples of 2", niceTicks, 0, 9, []string{"0", "2", "4", "6", "8"}},
		{"multiples of 5", niceTicks, 1, 27, []string{"5", "10", "15", "20", "25"}},
		{"fractions", niceTicks, 0, .6, []string{"0", "0.1", "0.2", "0.3", "0.4", "0.5", "0.6"}},
		{"across 0", niceTicks, -2, 4, []string{"-2", "-1", "0", "1", "2", "3", "4"}},
		{"large", niceTicks, 0, 123456, []string{"0", "50000", "100000"}},
		{"tiny", niceTicks, 0, 3e-5, []string{"0", "0.000005", "0.00001", "0.000015", "0.00002", "0.000025", "0.00003"}},
		{"a decade", logTicks, 1, 10, []string{"1", "2", "5", "10"}},
		{"part of a decade", logTicks, 3, 30, []string{"5", "10", "20"}},
		{"below 1", logTicks, .015, .6, []string{"0.02", "0.05", "0.1", "0.2", "0.5"}},
		{"powers of 2", sizeTicks, 2, 6, []string{"4", "8", "16", "32", "64"}},
		{"units", sizeTicks, 9.5, 12.5, []string{"1K", "2K", "4K"}},
		{"every fourth of many", sizeTicks, 0, 36, []string{"1", "16", "256", "4K", "64K", "1M", "16M", "256M", "4G", "64G"}},
		{"below one byte", sizeTicks, -.5, 1.5, []string{"1", "2"}},
	} {
		require.Equal(t, c.want, labels(c.ticks(c.low, c.high)), c.name)
	}
}

// Ticks lie within the axis, rise, and are few but not too few; a tick's label is its
// value.
func TestNiceTicksOfAnyAxis(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		low := rapid.Float64Range(0, 1e6).Draw(t, "low")
		high := low + rapid.Float64Range(1e-3, 1e6).Draw(t, "length")
		ticks := niceTicks(low, high)
		require.GreaterOrEqual(t, len(ticks), 2)
		require.LessOrEqual(t, len(ticks), 8)
		for i, tick := range ticks {
			slack := 1e-8 * high
			require.GreaterOrEqual(t, tick.Value, low-slack)
			require.LessOrEqual(t, tick.Value, high+slack)
			require.True(t, i == 0 || tick.Value > ticks[i-1].Value)
			value, err := strconv.ParseFloat(tick.Label, 64)
			require.NoError(t, err)
			require.InDelta(t, tick.Value, value, 1e-3*high+1e-9, "four digits")
		}
	})
}

// A step is 1, 2 or 5 times a power of ten, and the smallest that is long enough.
func TestNiceStep(t *testing.T) {
	for x, want := range map[float64]float64{0: 1, 1: 1, 1.01: 2, 2: 2, 2.1: 5, 5: 5, 5.01: 10, 10: 10, .03: .05, 1200: 2000} {
		require.InEpsilon(t, want, niceStep(x), 1e-12, "%v", x)
	}
	rapid.Check(t, func(t *rapid.T) {
		x := math.Exp(rapid.Float64Range(-20, 20).Draw(t, "logarithm"))
		require.GreaterOrEqual(t, niceStep(x), x*(1-1e-8))
		require.LessOrEqual(t, niceStep(x), 2.5*x*(1+1e-8), "2 to 5 is the longest gap")
	})
}

func TestTickText(t *testing.T) {
	for v, want := range map[float64]string{0: "0", math.Copysign(0, -1): "0", 1: "1", .1 + .2: "0.3", 1234.4: "1234", 12346: "12350", 1e6: "1000000", -2.5: "-2.5", 1e-5: "0.00001"} {
		require.Equal(t, want, tickText(v), "%v", v)
	}
}

// Every system has a colour and a shape of its own.
func TestLooksDiffer(t *testing.T) {
	seen := map[color.Color]string{}
	for _, system := range append(Systems(), "ps-sync:2", "spacy-ray", "spacy-ray-nccl") {
		require.Empty(t, seen[lookOf(system).color], "the colour of %s is taken", system)
		seen[lookOf(system).color] = system
	}
	require.Equal(t, lookOf("ps-sync:2"), lookOf("of a later version"), "an unknown system is drawn, too")
}
