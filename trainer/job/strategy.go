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

// allReduce is the strategy of trainer.AllReduce.
const allReduce = "allreduce"

// A makeStrategy makes the strategy of a rank.
type makeStrategy func(r *rank, ctx context.Context, b nn.Backend) trainer.Strategy

// strategies are the values of Spec.Strategy.
var strategies = map[string]makeStrategy{
	allReduce: (*rank).allReduce,
	psSync:    (*rank).parameterServers,
	localSGD:  (*rank).localSGD,
	diLoCo:    (*rank).localSGD,
	psAsync:   (*rank).asyncServers,
	psPeers:   (*rank).peers,
}

// strategy returns what makes the strategy, or nil if its name is unknown.
func (f *Spec) strategy() makeStrategy { return strategies[f.strategyName()] }

func (f *Spec) strategyName() string { return cmp.Or(f.Strategy, allReduce) }

// Strategies returns the values of Spec.Strategy, sorted.
func Strategies() []string { return slices.Sorted(maps.Keys(strategies)) }

// checkStrategy finds what is wrong with Strategy and its settings.
func (f *Spec) checkStrategy() error {
	if f.strategy() == nil {
		return fmt.Errorf("--strategy must be one of %s, not %q", strings.Join(Strategies(), ", "), f.Strategy)
	}
	if err := f.checkAsynchrony(); err != nil {
		return err
	}
	if err := f.checkSwitch(); err != nil {
		return err
	}
	return f.checkRounds()
}

func (r *rank) allReduce(ctx context.Context, b nn.Backend) trainer.Strategy {
	s := trainer.NewAllReduce(b, r.training.optimizer)
	s.SetCompression(r.training.Compression)
	s.SetBucket(r.training.Spec.Gradients.Bucket)
	s.SetSparse(r.training.sparse)
	if r.gpu != nil && r.gpu.ByNCCL() {
		s.SetSummer(r.gpu.Summer(ctx))
	}
	return s
}
