package job

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/ringtrain/ringtrain/nn"
	"github.com/ringtrain/ringtrain/trainer"
)

// A makeStrategy makes the strategy of a rank.
type makeStrategy func(r *rank, ctx context.Context, b nn.Backend) trainer.Strategy

// strategies are the values of Spec.Strategy.
var strategies = map[string]makeStrategy{
	"allreduce": (*rank).allReduce,
	psSync:      (*rank).parameterServers,
}

// strategy returns what makes the strategy, or nil if its name is unknown.
func (f *Spec) strategy() makeStrategy { return strategies[cmp.Or(f.Strategy, "allreduce")] }

// checkStrategy finds what is wrong with Strategy.
func (f *Spec) checkStrategy() error {
	if f.strategy() == nil {
		return fmt.Errorf("--strategy must be %s, not %q", strings.Join(slices.Sorted(maps.Keys(strategies)), " or "), f.Strategy)
	}
	return nil
}

func (r *rank) allReduce(ctx context.Context, b nn.Backend) trainer.Strategy {
	s := trainer.NewAllReduce(b, r.training.optimizer)
	s.SetCompression(r.training.compress)
	s.SetBucket(r.training.Spec.Gradients.Bucket)
	if r.gpu != nil && r.gpu.ByNCCL() {
		s.SetSummer(r.gpu.Summer(ctx))
	}
	return s
}
