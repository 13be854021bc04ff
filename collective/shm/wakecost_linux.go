package shm

import (
	"sync/atomic"
	"time"
)

const (
	wakeUps   = 5
	fallsDeep = 30 * time.Microsecond // from when a sleeper says that it sleeps until its core is idle
	wakesLate = 2 * time.Millisecond  // a rank that takes longer has not the core that it should have
)

// wakeCost returns how long the second rank of the host takes to wake when the first
// rings its doorbell; 0 on all other ranks, and if it cannot be measured.
func (m *meter) wakeCost() (least time.Duration) {
	t := m.t
	wakeUp, awake := t.mem.word(atWakeUp), t.mem.word(atAwake)
	switch {
	case t.rounds == 0: // ranks without cores of their own do not wait by these choices
	case t.self == 1:
		for n := uint64(1); n <= wakeUps; n++ {
			for atomic.LoadUint64(wakeUp) < n && t.under.Err() == nil {
				t.sleep(wakeUp, n)
			}
			atomic.StoreUint64(awake, n)
		}
	case t.self == 0:
		asleep := func() bool { return atomic.LoadUint32(t.asleep(1)) != 0 }
		for n := uint64(1); n <= wakeUps; n++ {
			valid := within(wakesLate, asleep)
			within(fallsDeep, func() bool { return false })
			began := time.Now()
			atomic.StoreUint64(wakeUp, n)
			t.ringDoorbell(1)
			if !valid || !within(wakesLate, func() bool { return atomic.LoadUint64(awake) >= n }) {
				atomic.StoreUint64(wakeUp, wakeUps)
				t.ringDoorbell(1)
				return 0
			}
			if took := time.Since(began); least == 0 || took < least {
				least = took
			}
		}
	}
	return least
}

// within polls until a condition is met, and reports whether that was in time.
func within(most time.Duration, met func() bool) bool {
	never := uint64(0)
	for began := time.Now(); time.Since(began) < most; {
		if met() {
			return true
		}
		spin(&never, 1, 10)
	}
	return met()
}
