//go:build linux && (amd64 || arm64) && !static

package kernels

import (
	"math"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ringtrain/ringtrain/nn"
)

// An abort is the struct Abort of the kernels.
type abort struct {
	set, _   int32
	withheld uint64
}

// vote returns a rank's vote for a step.
func (h *harness) vote(step uint64, set int32) []float32 {
	votes := h.room(nn.VoteLen)
	h.launch("vote", nn.VoteLen, votes, upload(h, []Progress{{Step: step}}), upload(h, []abort{{set: set}}))
	return h.download(votes, nn.VoteLen)
}

// commit checks what withholds an update.
func (h *harness) commit() {
	const step = 1<<40 + 7
	times := func(n float32, votes []float32) []float32 {
		for i := range votes {
			votes[i] *= n
		}
		return votes
	}
	changed := func(i int, v float32) []float32 {
		votes := times(3, h.vote(step, 0))
		votes[i] = v
		return votes
	}
	nan := float32(math.NaN())
	for name, c := range map[string]struct {
		ranks    int32
		votes    []float32
		before   abort
		withheld uint64 // 0: the update is made
	}{
		"all":             {3, times(3, h.vote(step, 0)), abort{}, 0},
		"the most":        {nn.MaxVotes, times(nn.MaxVotes, h.vote(step, 0)), abort{}, 0},
		"one is missing":  {3, times(2, h.vote(step, 0)), abort{}, step + 1},
		"another step":    {3, times(3, h.vote(step-1, 0)), abort{}, step + 1},
		"nothing":         {1, make([]float32, nn.VoteLen), abort{}, step + 1},
		"against":         {1, h.vote(step, 1), abort{}, step + 1},
		"the first":       {3, changed(0, 1), abort{}, step + 1},
		"the last":        {3, changed(nn.VoteLen-1, nan), abort{}, step + 1},
		"aborted":         {3, times(3, h.vote(step, 0)), abort{set: 1}, step + 1},
		"withheld before": {3, times(3, h.vote(step, 0)), abort{set: 1, withheld: 5}, 5},
	} {
		stop, word := h.room(1), upload(h, []abort{c.before})
		h.launch("commit", 1, stop, upload(h, c.votes), c.ranks, upload(h, []Progress{{Step: step}}), word)
		var stops [1]int32
		var after [1]abort
		download(h, stops[:], stop)
		download(h, after[:], word)
		want, set := abort{withheld: c.withheld}, int32(0)
		if c.withheld > 0 {
			want.set, set = 1, 1
		}
		require.Equal(h.t, want, after[0], name)
		require.Equal(h.t, set, stops[0], name)
	}
}

// Votes are integers whose sums are exact, and no two steps have the same one.
func TestVotes(t *testing.T) {
	h := newHarness(t)
	seen := map[[nn.VoteLen]float32]uint64{}
	for _, step := range slices.Concat(span(0, 300), span(1<<32-2, 4), span(math.MaxUint64-1, 2)) {
		v := [nn.VoteLen]float32(h.vote(step, 0))
		for _, x := range v {
			require.True(t, x >= 1 && x <= 256 && x == float32(int(x)), "%v", x)
		}
		require.NotContains(t, seen, v, "step %d", step)
		seen[v] = step
	}
}

// span returns n numbers from first on.
func span(first uint64, n int) []uint64 {
	all := make([]uint64, n)
	for i := range all {
		all[i] = first + uint64(i)
	}
	return all
}
