package trainer

import (
	"context"

	"github.com/ringtrain/ringtrain/nn"
)

// Score counts this rank's share of an evaluation, without dropout.
func Score(ctx context.Context, b nn.Backend, t Task) (nn.Counts, error) {
	counts := nn.Counts{}
	if err := t.Score(&nn.Pass{Backend: b}, counts); err != nil {
		return nil, err
	}
	return counts, b.Sync(ctx) // the counts of a device that failed are garbage
}
