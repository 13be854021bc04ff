package cli

import (
	"fmt"

	"github.com/ringtrain/ringtrain/collective"
	"github.com/ringtrain/ringtrain/collective/schedule"
	"github.com/ringtrain/ringtrain/trainer"
)

// planOf says how the ranks of a view add up count float32, of which some leave
// before all are there if they are many.
func planOf(v collective.View, count int) string {
	near := oneHost(v)
	text := planText(schedule.PlanReduce(v.Size(), min(count, trainer.DefaultBucket/4), 4, near, true), v.Size(), near)
	if v.Size() > 1 && 4*count > trainer.DefaultBucket {
		text += fmt.Sprintf(", in buckets of %d bytes or more", trainer.DefaultBucket)
	}
	return text
}

// planText is a plan in words, the same for all ranks.
func planText(p schedule.Plan, size int, near bool) string {
	where := "between hosts"
	if near {
		where = "on one host"
	}
	if size == 1 {
		return "alone"
	}
	return fmt.Sprintf("%v among %d ranks %s, in ring order, messages of %d elements", p.Method, size, where, p.Segment)
}

// oneHost reports whether all members are on one host, as groups see it.
func oneHost(v collective.View) bool {
	for _, m := range v.Members {
		first := v.Members[0]
		if m.Host != first.Host || m.Host == 0 && m.Node != first.Node {
			return false
		}
	}
	return true
}
