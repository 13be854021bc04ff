package trainer

import (
	"context"
	"maps"
	"slices"
	"strings"

	"github.com/ringtrain/ringtrain/collective"
	"github.com/ringtrain/ringtrain/nn"
)

// classification is what every model is counted by; a model may add to it.
var classification = []string{nn.CountRows, nn.CountCorrect, nn.CountLoss}

// Evaluate scores the rows of all ranks, without dropout, and returns the
// counts summed over the ranks, the same bits on each. A model that counts more
// than a classifier counts it for every batch, and every rank has rows then.
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
	if err := b.Sync(ctx); err != nil { // what a device that failed has counted is garbage
		return nil, err
	}
	counted := slices.Sorted(maps.Keys(counts))
	if err := sameNames(ctx, g, counted); err != nil {
		return nil, err
	}
	sums := make([]float64, len(counted))
	for i, name := range counted {
		sums[i] = counts[name]
	}
	if err := collective.AllReduce(ctx, g, sums, collective.Sum); err != nil {
		return nil, err
	}
	for i, name := range counted {
		counts[name] = sums[i]
	}
	return counts, nil
}

// sameNames makes sure that the ranks are about to add the same counts.
func sameNames(ctx context.Context, g *collective.Group, counted []string) error {
	all := make([]int64, g.Size())
	if err := collective.AllGather(ctx, g, all, []int64{digest([]byte(strings.Join(counted, "\x00")))}); err != nil {
		return err
	}
	if odd := differing(all, func(d int64) int64 { return d }); odd != nil {
		return &DivergedError{What: "names of counts", Ranks: odd, Names: names(g.View(), odd)}
	}
	return nil
}
