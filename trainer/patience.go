package trainer

import (
	"slices"
	"time"
)

// minPatience is the least time that a step's exchange waits for ranks that are alive
// but do not call.
const minPatience = 30 * time.Second

// mostPatience is how long it waits before any step has been timed, or for a rank
// that is late for a reason.
const mostPatience = 20 * minPatience

// patienceLen is the number of recent steps that the median is taken of.
const patienceLen = 32

// A patience knows how long steps take, from one exchange to the next, evaluations
// included, and how long to wait for one.
type patience struct {
	last  time.Time
	steps []time.Duration // the last patienceLen of them, in a ring
	next  int
}

// limit notes that a step's exchange begins now and returns how long it may take:
// 20 times the median step. A rank that is late for a reason gets more.
func (p *patience) limit(now time.Time, late bool) time.Duration {
	if !p.last.IsZero() {
		if len(p.steps) < patienceLen {
			p.steps = append(p.steps, 0)
		}
		p.steps[p.next] = now.Sub(p.last)
		p.next = (p.next + 1) % patienceLen
	}
	p.last = now
	least := minPatience
	if len(p.steps) == 0 || late {
		least = mostPatience
	}
	if len(p.steps) == 0 {
		return least
	}
	sorted := slices.Sorted(slices.Values(p.steps))
	return max(least, 20*sorted[len(sorted)/2])
}
