package cli

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"

	"github.com/ringtrain/ringtrain/collective"
	"github.com/ringtrain/ringtrain/collective/schedule"
	"github.com/ringtrain/ringtrain/trainer"
)

// planOf says how the ranks of a group add up so many gradients, of which some
// leave before all are there if they are many.
func planOf(g *collective.Group, gradients int, c trainer.Compression) string {
	var text string
	first := min(gradients, trainer.DefaultBucket/4)
	t, summed := c.Sums()
	switch {
	case !summed:
		text = gatherText(c, g.Size())
	case t == collective.Float32:
		text = planText(g.PlanAllReduce(collective.Of(make([]float32, first)), collective.Sum), g.Size())
	default:
		text = planText(g.PlanAllReduce(collective.Of16(make([]uint16, first), t), collective.Sum), g.Size()) + fmt.Sprintf(", as %v", t)
	}
	if g.Size() > 1 && 4*gradients > trainer.DefaultBucket {
		text += fmt.Sprintf(", in buckets of %d bytes or more", trainer.DefaultBucket)
	}
	return text
}

// gatherText is the plan of what no group adds up.
func gatherText(c trainer.Compression, size int) string {
	if size == 1 {
		return fmt.Sprintf("alone, as %v", c)
	}
	return fmt.Sprintf("gathered as %v by %d ranks, each adds up in ring order", c, size)
}

// planText is a plan in words, the same for all ranks.
func planText(p schedule.Plan, size int) string {
	switch {
	case size == 1:
		return "alone"
	case p.Method == schedule.Shared:
		return fmt.Sprintf("memory shared by %d ranks, in ring order", size)
	}
	order := "in ring order"
	if !p.Method.RingOrdered() {
		order = "in an order of its own"
	}
	return fmt.Sprintf("%v among %d ranks, %s, messages of %d elements", p.Method, size, order, p.Segment)
}

// planDigest is the same for two trainings whose gradients are added up alike,
// whatever the sizes of their parts: of the plans of so many gradients and of
// fewer, by powers of two.
func planDigest(g *collective.Group, gradients int) string {
	sum := sha256.New()
	s := g.Situation()
	fmt.Fprintln(sum, s.Hosts)
	for n := 1; n < 2*gradients; n *= 2 {
		p := s.Plan(min(n, gradients), collective.Float32.Size(), true)
		fmt.Fprintln(sum, n, p.Method, p.Segment)
	}
	return hex.EncodeToString(sum.Sum(nil)[:8])
}
