package tcp

import (
	"sync/atomic"
	"time"
)

// A spinLimit is the number of polls without result after which a goroutine sleeps. It
// adapts. Polling notices early data without the cost of sleeping and waking, but if other
// ranks need the core, or the awaited peer is far behind, polling only takes time from
// them. Short sleeps therefore raise the limit, and long ones lower it.
type spinLimit struct {
	limit       atomic.Int32
	least, most int32
}

const (
	spinLeast, spinMost   = 10, 250 // polls of about 0.2 µs
	yieldLeast, yieldMost = 5, 40   // polls that each yield the core to another process
	shortSleep            = 100 * time.Microsecond
)

func (s *spinLimit) set(least, most int32) {
	s.least, s.most = least, most
	s.limit.Store(most)
}

func (s *spinLimit) reached(polls int) bool { return polls >= int(s.limit.Load()) }

// slept adapts the limit to the length of a sleep.
func (s *spinLimit) slept(d time.Duration) {
	if d < shortSleep {
		s.limit.Store(min(2*s.limit.Load(), s.most))
	} else {
		s.limit.Store(max(s.limit.Load()/2, s.least))
	}
}
