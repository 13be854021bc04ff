package job

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"slices"
	"strings"

	"github.com/ringtrain/ringtrain/collective"
	"github.com/ringtrain/ringtrain/collective/schedule"
	"github.com/ringtrain/ringtrain/trainer"
)

// planOf describes how a group sums gradients in buckets of these lengths.
func planOf(g *collective.Group, lens []int, c trainer.Compression) string {
	s := g.Situation()
	t, summed := c.SumType()
	text := func(n int) string {
		if !summed {
			return gatherText(c, g.Size())
		}
		plan := planText(s.Plan(n, t.Size(), t == collective.Float32), g.Size()) // partial sums do not fit into 16 bits
		if t != collective.Float32 {
			plan += fmt.Sprintf(", as %v", t)
		}
		return plan
	}
	return planOfBuckets(lens, text)
}

// bucketsOf returns the lengths of the buckets in which the gradients of a rank's task leave.
// With whole, all leave at once, unless they are compressed or some leave as rows.
func bucketsOf(r *rank, whole bool) []int {
	p, sparse := r.task.Params(), sparseOf(r)
	if r.group.Size() == 1 || whole && r.training.Compression.Form == trainer.Exact && sparse.Tables(p) == 0 {
		return []int{p.Grads.Len()}
	}
	return sparse.Buckets(p, r.bucket())
}

// sparseOf returns how gradients of tables leave. Only AllReduce in host memory sends rows,
// and only without compression.
func sparseOf(r *rank) trainer.Sparse {
	s := r.training
	if r.group.Size() == 1 || r.gpu != nil || s.Compression.Form != trainer.Exact || s.Spec.strategyName() != allReduce {
		return trainer.SparseOff
	}
	return s.sparse
}

// rowsPlan describes the part of the plan that is about tables.
func rowsPlan(r *rank) string {
	n, when := sparseOf(r).Tables(r.task.Params()), ""
	if n == 0 {
		return ""
	}
	if sparseOf(r) == trainer.SparseAuto {
		when = " in steps in which that is fewer bytes"
	}
	return fmt.Sprintf("; embedding tables (%d) as rows%s", n, when)
}

// bucket returns the minimum number of bytes in a bucket of this rank's task.
func (r *rank) bucket() int {
	if bytes := r.training.Spec.Gradients.Bucket; bytes > 0 {
		return bytes
	}
	return trainer.ChooseBucket(r.group, r.task.Params(), r.training.Compression)
}

// planOfBuckets describes the plan of buckets of these lengths; text describes that of
// one. Consecutive buckets with the same plan are named together.
func planOfBuckets(lens []int, text func(n int) string) string {
	if len(lens) == 1 {
		return text(lens[0])
	}
	var plans []string
	for lo, hi := 0, 0; lo < len(lens); lo = hi {
		plan := text(lens[lo])
		for hi = lo + 1; hi < len(lens) && text(lens[hi]) == plan; {
			hi++
		}
		plans = append(plans, fmt.Sprintf("%s (%s)", plan, bucketsText(lo, hi, lens)))
	}
	return strings.Join(plans, "; ")
}

// bucketsText names the buckets in [lo, hi) by number, from 1, and size in bytes.
func bucketsText(lo, hi int, lens []int) string {
	least, most := 4*slices.Min(lens[lo:hi]), 4*slices.Max(lens[lo:hi])
	name, bytes := fmt.Sprintf("bucket %d", lo+1), fmt.Sprint(most)
	if hi > lo+1 {
		name = fmt.Sprintf("buckets %d to %d", lo+1, hi)
	}
	if least < most {
		bytes = fmt.Sprintf("%d to %d", least, most)
	}
	return fmt.Sprintf("%s of %d, %s bytes", name, len(lens), bytes)
}

// gatherText describes the plan of a compression whose payloads a group gathers instead
// of summing.
func gatherText(c trainer.Compression, size int) string {
	if size == 1 {
		return fmt.Sprintf("alone, as %v", c)
	}
	return fmt.Sprintf("gathered as %v by %d ranks, summed by each in ring order", c, size)
}

// planText describes a plan. It is the same on all ranks.
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

// planDigest hashes the plans of vectors of 1, 2, 4, ... and gradients elements. It is equal
// for trainings that sum vectors of any such length in the same way.
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

// overlap describes which gradients leave a GPU during the backward pass. It is "" if all
// leave afterwards.
func (r *rank) overlap(c *trainer.Config) string {
	apart := c.Recording != nil && c.Recording.Apart
	whole := c.Recording == nil && (c.Accumulate || c.Reduce != trainer.ReduceMean)
	if r.gpu == nil || r.group.Size() == 1 || r.training.Spec.inRounds() || !r.gpu.ByNCCL() || apart || whole {
		return ""
	}
	lens := trainer.Buckets(r.task.Params(), r.bucket())
	if len(lens) == 1 {
		return ""
	}
	bytes := fmt.Sprint(4 * slices.Max(lens))
	if least := slices.Min(lens); least < slices.Max(lens) {
		bytes = fmt.Sprintf("%d to %s", 4*least, bytes)
	}
	return fmt.Sprintf("; gradients leave in %d buckets of %s bytes during the backward pass", len(lens), bytes)
}
