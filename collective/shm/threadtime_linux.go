package shm

import (
	"time"

	"golang.org/x/sys/unix"
)

// A threadTime is a moment of a goroutine, on the thread that runs it then.
type threadTime struct {
	thread int
	wall   time.Time
	cpu    time.Duration // that the thread has worked
}

func threadNow() threadTime {
	var cpu unix.Timespec
	_ = unix.ClockGettime(unix.CLOCK_THREAD_CPUTIME_ID, &cpu) // fails for no thread that exists
	return threadTime{thread: unix.Gettid(), wall: time.Now(), cpu: time.Duration(cpu.Nano())}
}

// offCore returns how long the thread has not run since then: another thread had its
// core, it slept, or the hypervisor ran something else. It is 0 if the goroutine has
// changed threads.
func (then threadTime) offCore() time.Duration {
	now := threadNow()
	if now.thread != then.thread {
		return 0
	}
	return max(0, now.wall.Sub(then.wall)-(now.cpu-then.cpu))
}

// A thread of the Go runtime takes a rank's core for some 20 us at a time. Another
// program takes it for a slice of the scheduler, 700 us or more.
const (
	offCoreOften = 100 * time.Microsecond
	offCorePart  = 4 // of a call: a long one is interrupted more often
)

// disturbs reports whether other programs have disturbed a call during which a rank was
// off its core for the given time.
func disturbs(offCore, took time.Duration) bool { return offCore > offCoreOften+took/offCorePart }
