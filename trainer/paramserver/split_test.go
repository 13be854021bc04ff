package paramserver

import (
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/ringtrain/ringtrain/nn"
)

// sized returns parameters of these lengths, one after another.
func sized(lens ...int) []parameter {
	var all []parameter
	at := 0
	for _, n := range lens {
		all = append(all, parameter{Name: "p", Offset: at, Len: n})
		at += (n + alignment - 1) / alignment * alignment
	}
	return all
}

func TestSplit(t *testing.T) {
	const b = nn.BlockSize
	for name, c := range map[string]struct {
		params  []parameter
		servers int
		cut     bool
		want    [][]piece
	}{
		"one server":               {sized(5, 7), 1, true, [][]piece{{{0, 0, 5}, {1, 0, 7}}}},
		"largest first":            {sized(1, 9, 2, 8), 2, true, [][]piece{{{0, 0, 1}, {1, 0, 9}}, {{2, 0, 2}, {3, 0, 8}}}},
		"more servers":             {sized(3), 2, true, [][]piece{{{0, 0, 3}}, nil}},
		"more than twice the mean": {sized(8*b+5, 10), 3, true, [][]piece{{{0, b, 3 * b}, {0, 7 * b, 8*b + 5}}, {{0, 0, b}, {0, 3 * b, 5 * b}}, {{0, 5 * b, 7 * b}, {1, 0, 10}}}},
		"not cut":                  {sized(8*b+5, 10), 3, false, [][]piece{{{0, 0, 8*b + 5}}, {{1, 0, 10}}, nil}},
		"statistic":                {[]parameter{{Len: 8 * b, Momentum: .1}, {Offset: 8 * b, Len: 1}}, 3, true, [][]piece{{{0, 0, 8 * b}}, {{1, 0, 1}}, nil}},
		"nothing":                  {nil, 2, true, [][]piece{nil, nil}},
	} {
		t.Run(name, func(t *testing.T) { require.Equal(t, c.want, split(c.params, c.servers, c.cut)) })
	}
}

// Every element has one server, pieces begin at blocks, and no server has more than the
// mean and two means, which is the largest parameter that is not cut.
func TestSplitCoversEverything(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		lens := rapid.SliceOfN(rapid.IntRange(1, 12*nn.BlockSize), 0, 20).Draw(t, "lens")
		servers := rapid.IntRange(1, 9).Draw(t, "servers")
		params, total := sized(lens...), 0
		for _, n := range lens {
			total += n
		}
		shares := split(params, servers, true)
		require.Len(t, shares, servers)
		mean, held := max(total/servers, 1), make([][]piece, len(lens))
		for _, share := range shares {
			load := 0
			for _, p := range share {
				held[p.param] = append(held[p.param], p)
				load += p.len()
			}
			require.LessOrEqual(t, load, mean+max(2*mean, nn.BlockSize))
		}
		for i, pieces := range held {
			slices.SortFunc(pieces, func(a, b piece) int { return a.lo - b.lo })
			end := 0
			for _, p := range pieces {
				require.Equal(t, end, p.lo)
				require.Zero(t, p.lo%nn.BlockSize)
				end = p.hi
			}
			require.Equal(t, lens[i], end)
		}
	})
}

// Buckets are so large that each has something for all servers.
func TestBuckets(t *testing.T) {
	p := &nn.Params{Grads: nn.Host(make([]float32, 16<<10))}
	for i := range 16 {
		p.List = append(p.List, &nn.Param{Offset: i << 10, Values: p.Grads.Slice(0, 1<<10)})
	}
	for servers, buckets := range map[int]int{1: 16, 2: 8, 4: 4, 16: 1} {
		lens := Buckets(p, servers, 1)
		require.Len(t, lens, buckets, "%d servers", servers)
		for _, held := range Shares(p, servers, lens) {
			require.Equal(t, slices.Repeat([]int{lens[0] / servers}, servers), held)
		}
	}
}
