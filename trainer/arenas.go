package trainer

import (
	"context"

	"github.com/ringtrain/ringtrain/collective"
)

// agreeWanted returns whether rank 0 wants a part of the state that all ranks have to send.
func agreeWanted(ctx context.Context, g *collective.Group, wanted bool) (bool, error) {
	word := []int64{0}
	if wanted {
		word[0] = 1
	}
	err := collective.Broadcast(ctx, g, word, 0)
	return word[0] != 0, err
}

// gatherArenas returns the arenas of all ranks, by rank, on rank 0, and nil elsewhere.
func gatherArenas(ctx context.Context, g *collective.Group, mine []float32) (arenas [][]float32, err error) {
	n, all := len(mine), []float32(nil)
	if g.Rank() == 0 {
		all = make([]float32, n*g.Size())
	}
	if err := g.Gather(ctx, collective.Of(all), collective.Of(mine), 0); err != nil {
		return nil, err
	}
	for ; len(all) > 0; all = all[n:] {
		arenas = append(arenas, all[:n:n])
	}
	return arenas, nil
}

// scatterArenas sets mine to this rank's arena of those on rank 0, one per rank.
func scatterArenas(ctx context.Context, g *collective.Group, mine []float32, arenas [][]float32) error {
	var all []float32
	if g.Rank() == 0 {
		all = make([]float32, 0, len(mine)*g.Size())
		for _, x := range arenas {
			all = append(all, x...)
		}
	}
	return g.Scatter(ctx, collective.Of(mine), collective.Of(all), 0)
}
