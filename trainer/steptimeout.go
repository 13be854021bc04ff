package trainer

import (
	"slices"
	"time"
)

// minStepTimeout is the minimum time to wait for ranks that are alive but do not call.
const minStepTimeout = 30 * time.Second

// longStepTimeout is the time to wait before any step has been timed, and the least time
// to wait for a rank that is late for a reason.
const longStepTimeout = 20 * minStepTimeout

// timedSteps is the number of recent steps whose median counts.
const timedSteps = 32

// A stepTimeout limits the exchange of a step, or a launch of several. It times steps from
// one exchange to the next, evaluations included.
type stepTimeout struct {
	last  time.Time
	since int             // steps of the exchange that began then
	steps []time.Duration // the last timedSteps of them, in a ring
	next  int
}

// begin notes that the exchange of n steps begins now and returns how long it may take: 20
// times as long as n median steps, but at least minStepTimeout. With late, it is at least
// longStepTimeout.
func (p *stepTimeout) begin(now time.Time, n int, late bool) time.Duration {
	if !p.last.IsZero() {
		if len(p.steps) < timedSteps {
			p.steps = append(p.steps, 0)
		}
		p.steps[p.next] = now.Sub(p.last) / time.Duration(p.since)
		p.next = (p.next + 1) % timedSteps
	}
	p.last, p.since = now, n
	least := minStepTimeout
	if len(p.steps) == 0 || late {
		least = longStepTimeout
	}
	if len(p.steps) == 0 {
		return least
	}
	sorted := slices.Sorted(slices.Values(p.steps))
	return max(least, 20*sorted[len(sorted)/2]*time.Duration(n))
}
