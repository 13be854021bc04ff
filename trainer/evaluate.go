package trainer

import (
	"context"

	"github.com/ringtrain/ringtrain/nn"
)

// classification is what every model counts; a model may count more.
var classification = []string{nn.CountRows, nn.CountCorrect, nn.CountLoss}

// Score counts this rank's share of an evaluation, without dropout. Every rank
// counts rows, correct answers and loss, also if it has no rows; a model that
// counts more does so in every batch, and then every rank needs rows.
func Score(ctx context.Context, b nn.Backend, m nn.Model, rows Shard) (nn.Counts, error) {
	counts := nn.Counts{}
	for _, name := range classification {
		counts[name] = 0
	}
	for batch, err := range rows.All() {
		if err != nil {
			return nil, err
		}
		if err := m.Score(&nn.Pass{Backend: b}, batch, counts); err != nil {
			return nil, err
		}
	}
	return counts, b.Sync(ctx) // a device that failed has counted garbage
}
