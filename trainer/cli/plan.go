package cli

import (
	"fmt"

	"github.com/ringtrain/ringtrain/collective"
	"github.com/ringtrain/ringtrain/collective/schedule"
	"github.com/ringtrain/ringtrain/trainer"
)

// planOf says how the ranks of a group add up gradients, of which some leave
// before all are there if they are many.
func planOf(g *collective.Group, grads []float32) string {
	first := grads[:min(len(grads), trainer.DefaultBucket/4)]
	text := planText(g.PlanAllReduce(collective.Of(first), collective.Sum), g.Size())
	if g.Size() > 1 && 4*len(grads) > trainer.DefaultBucket {
		text += fmt.Sprintf(", in buckets of %d bytes or more", trainer.DefaultBucket)
	}
	return text
}

// planText is a plan in words, the same for all ranks.
func planText(p schedule.Plan, size int) string {
	switch {
	case size == 1:
		return "alone"
	case p.Method == schedule.Shared:
		return fmt.Sprintf("memory shared by %d ranks, in ring order", size)
	}
	return fmt.Sprintf("%v among %d ranks, in ring order, messages of %d elements", p.Method, size, p.Segment)
}
