package schedule

import (
	"math"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

func TestLinksWords(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		number := rapid.Float64Range(0, 1e9)
		l := Links{Near: Cost{number.Draw(t, "a"), number.Draw(t, "b"), number.Draw(t, "c")}, Far: Cost{number.Draw(t, "d"), number.Draw(t, "e"), number.Draw(t, "f")}}
		for i := range rapid.IntRange(0, MostSamples).Draw(t, "calls") {
			l.Calls = append(l.Calls, Sample{1 << (10 + i), time.Duration(rapid.Int64Range(1, 1e12).Draw(t, "took")), rapid.SampledFrom([]Rival{{}, {Method: Bruck}, {Method: Ring}, {Ring, longPair}}).Draw(t, "rival")})
		}
		require.NoError(t, l.Check())
		require.Len(t, l.Words(), LinksWords)
		require.Equal(t, l, LinksOf(l.Words()))
	})
}

func TestLinksCheck(t *testing.T) {
	for name, l := range map[string]Links{
		"negative": {Near: Cost{Latency: -1}},
		"NaN":      {Far: Cost{PerByte: math.NaN()}},
		"infinite": {Far: Cost{Fold: math.Inf(1)}},
		"no time":  {Calls: []Sample{{4, 0, Rival{}}}},
		"no bytes": {Calls: []Sample{{0, 4, Rival{}}}},
		"order":    {Calls: []Sample{{8, 1, Rival{}}, {4, 1, Rival{}}}},
		"twice":    {Calls: []Sample{{8, 1, Rival{}}, {8, 1, Rival{}}}},
		"many":     {Calls: make([]Sample, MostSamples+1)},
	} {
		require.Error(t, l.Check(), name)
	}
}

func TestProbes(t *testing.T) {
	small, large, slow := Sample{64 << 10, 8000, Rival{}}, Sample{4 << 20, 5_000_000, Rival{}}, Sample{8 << 20, 5_000_001, Rival{}}
	l := Links{Calls: []Sample{{4 << 10, 1000, Rival{}}, small, {1 << 20, 300_000, Rival{}}, large, slow}}
	require.Equal(t, []Sample{large, small}, l.Probes())
	l.Calls = []Sample{small, slow}
	require.Equal(t, []Sample{small}, l.Probes())
	require.Empty(t, (&Links{}).Probes())
	for took, want := range map[time.Duration]bool{8000: true, 15_999: true, 16_000: false, 80_000: false, 4001: true, 4000: false} {
		require.Equal(t, want, small.Confirms(took), took)
	}
}

func TestLastingLinks(t *testing.T) {
	l := Links{Calls: []Sample{{64 << 10, 10_000, Rival{}}, {256 << 10, 40_000, Rival{}}, {1 << 20, 320_000, Rival{}}}}
	require.True(t, l.Lasting())
	l.Calls[1].Took = 125_000
	require.False(t, l.Lasting(), "one call was disturbed")
	require.True(t, (&Links{}).Lasting())
	require.False(t, (&Links{Calls: []Sample{{4 << 10, 1_000_000, Rival{}}, {16 << 10, 2_000_000, Rival{}}}}).Lasting(), "small calls tell little")
}

func TestNeighbours(t *testing.T) {
	hosts := []int{0, 0, 2, 0, 2, 5}
	for rank, want := range [][2]int{{1, 3}, {3, 0}, {4, 4}, {0, 1}, {2, 2}, {5, 5}} {
		up, down := Neighbours(rank, hosts)
		require.Equal(t, want, [2]int{up, down}, rank)
	}
	require.True(t, Crowded(hosts))
	require.False(t, Crowded([]int{0, 1, 2}))
}

// Calls bound what a byte between hosts costs. The times are of 8 hosts at 1 Gbit/s, which send
// 1.75 times as many bytes as a vector has.
func TestLinksCorrectedByCalls(t *testing.T) {
	calls := []Sample{{4 << 10, 1_062_000, Rival{}}, {64 << 10, 1_509_000, Rival{}}, {256 << 10, 4_151_000, Rival{}}, {1 << 20, 16_094_000, Rival{}}}
	apart, pairs := []int{0, 1, 2, 3, 4, 5, 6, 7}, []int{0, 0, 0, 0, 1, 1, 1, 1}
	for name, c := range map[string]struct {
		perByte float64
		calls   []Sample
		hosts   []int
		want    float64
	}{
		"undisturbed":                    {8.4, calls, apart, 8.4},
		"a trial was slow":               {61, calls, apart, 8.2},
		"no trial was slower than empty": {0, calls, apart, 8.2},
		"and small calls were slow, too": {0, []Sample{{4 << 10, 6_500_000, Rival{}}, {256 << 10, 6_000_000, Rival{}}}, apart, 6.5},
		"small calls tell too little":    {61, []Sample{{4 << 10, 1_111_000, Rival{}}, {16 << 10, 2_049_000, Rival{}}}, apart, 61},
		"one call tells nothing":         {0, []Sample{{256 << 10, 4_151_000, Rival{}}}, apart, Network.PerByte},
		"no calls":                       {0, nil, apart, Network.PerByte},
		"tokens were saved up":           {13, calls, apart, 13},
		"two hosts may send less":        {22, calls, pairs, 22},
	} {
		l := Links{Far: Cost{Latency: 320_000, PerByte: c.perByte, Fold: 1}, Calls: c.calls}
		l.Correct(c.hosts)
		require.Equal(t, 320_000., l.Far.Latency, name)
		require.InDelta(t, c.want, l.Far.PerByte, 1e-9, name)
	}
}
