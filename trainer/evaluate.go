package trainer

import (
	"context"
	"maps"
	"slices"

	"github.com/ringtrain/ringtrain/collective"
	"github.com/ringtrain/ringtrain/nn"
)

// classification is what every model is counted by; a model may add to it.
var classification = []string{nn.CountRows, nn.CountCorrect, nn.CountLoss}

// Evaluate scores the rows of all ranks, without dropout, and returns the
// counts summed over the ranks, the same bits on each.
func Evaluate(ctx context.Context, g *collective.Group, b nn.Backend, m nn.Model, rows Shard) (nn.Counts, error) {
	counts := nn.Counts{}
	for _, name := range classification {
		counts[name] = 0 // a rank without rows counts the same things
	}
	for batch, err := range rows.All() {
		if err != nil {
			return nil, err
		}
		if err := m.Score(&nn.Pass{Backend: b}, batch, counts); err != nil {
			return nil, err
		}
	}
	names := slices.Sorted(maps.Keys(counts))
	sums := make([]float64, len(names))
	for i, name := range names {
		sums[i] = counts[name]
	}
	if err := collective.AllReduce(ctx, g, sums, collective.Sum); err != nil {
		return nil, err
	}
	for i, name := range names {
		counts[name] = sums[i]
	}
	return counts, nil
}
