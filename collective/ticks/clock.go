package ticks

import "time"

// Ticks is a moment as a Clock counts it. A Reading of the same Clock converts it.
type Ticks uint64

// A Clock gives moments as Ticks. Any goroutine may use it.
type Clock struct {
	origin  time.Time
	counter bool // it reads the processor's counter
	start   pair // when the Clock was made
}

// New makes a Clock whose Readings give times after origin.
func New(origin time.Time) *Clock {
	c := &Clock{origin: origin, counter: useCounter()}
	c.start = c.pair()
	return c
}

// Now returns the current moment.
func (c *Clock) Now() Ticks {
	if c.counter {
		return counter()
	}
	return Ticks(time.Since(c.origin))
}

// A Reading converts Ticks into times. It learns the rate of the counter from the time
// since the Clock was made, so different Readings give slightly different times for the
// same Ticks. Those of one Reading are in order.
type Reading struct {
	pair
	rate float64 // nanoseconds per tick
}

// Read reads the clock.
func (c *Clock) Read() Reading {
	r := Reading{pair: c.pair()}
	if passed := r.ticks - c.start.ticks; passed > 0 {
		r.rate = float64(r.now-c.start.now) / float64(passed)
	}
	return r
}

// Now returns the time of the Reading, after the Clock's origin.
func (r *Reading) Now() time.Duration { return r.now }

// At returns the time of a moment before the Reading, after the Clock's origin. Later
// moments have the time of the Reading.
func (r *Reading) At(t Ticks) time.Duration {
	if t >= r.ticks {
		return r.now
	}
	return r.now - time.Duration(float64(r.ticks-t)*r.rate)
}

// A pair is a moment by both clocks.
type pair struct {
	ticks Ticks
	now   time.Duration // after origin
}

// The two clocks are read within mostApart ticks, or as closely as mostTries allow,
// because the thread may lose its core between them.
const (
	mostApart = 500
	mostTries = 5
)

func (c *Clock) pair() pair {
	if !c.counter {
		now := time.Since(c.origin)
		return pair{Ticks(now), now}
	}
	var best pair
	least := ^Ticks(0)
	for range mostTries {
		before := counter()
		now := time.Since(c.origin)
		if apart := counter() - before; apart < least {
			least, best = apart, pair{before + apart/2, now}
		}
		if least <= mostApart {
			break
		}
	}
	return best
}
