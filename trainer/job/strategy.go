package job

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/ringtrain/ringtrain/nn"
	"github.com/ringtrain/ringtrain/trainer"
)

// strategies maps the names for Spec.Strategy to functions that make the strategy.
var strategies = map[string]func(r *rank, ctx context.Context, b nn.Backend) trainer.Strategy{
	"allreduce": (*rank).allReduce,
}

// checkStrategy returns an error if no strategy has the name in Strategy.
func (f *Spec) checkStrategy() error {
	if strategies[f.Strategy] == nil {
		return fmt.Errorf("--strategy must be %s, not %s", strings.Join(slices.Sorted(maps.Keys(strategies)), " or "), f.Strategy)
	}
	return nil
}

func (r *rank) allReduce(ctx context.Context, b nn.Backend) trainer.Strategy {
	s := trainer.NewAllReduce(b, r.training.optimizer)
	s.SetCompression(r.training.compress)
	s.SetBucket(r.training.Spec.Gradients.bucket())
	if r.gpu != nil && r.gpu.ByNCCL() {
		s.SetSummer(r.gpu.Summer(ctx))
	}
	return s
}
