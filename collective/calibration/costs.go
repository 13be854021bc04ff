package calibration

import "time"

// Costs are what waiting costs on a host: one poll, one call of sched_yield while no
// other process wants the core, and waking a process that sleeps.
type Costs struct{ Poll, Yield, Wake time.Duration }

// How long a rank waits, in time. The choices are numbers of polls and yields.
const (
	roundTime = 5 * time.Microsecond
	yieldTime = 20 * time.Microsecond // of the yields after the polls
	leastPoll = 20 * time.Microsecond // all rounds together, however fast a process is woken
	mostPoll  = 100 * time.Microsecond
)

// wait chooses how long a rank polls and yields: about as long as waking it would take.
// Whenever the awaited rank arrives, the wait then costs at most twice what it would
// with knowledge of the future (Karlin et al., 1991).
func (c *Choices) wait(costs Costs) {
	if costs.Poll > 0 {
		c.Polls = bound(int(roundTime/costs.Poll), 25, 1000)
	}
	if costs.Wake > 0 {
		c.Rounds = int((min(max(costs.Wake, leastPoll), mostPoll) + roundTime - 1) / roundTime)
	}
	if costs.Yield > 0 {
		c.Yields = bound(int(yieldTime/costs.Yield), 10, 200)
	}
}

func bound(n, least, most int) int { return min(max(n, least), most) }
