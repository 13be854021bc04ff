package shm

import (
	"sync/atomic"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/ringtrain/ringtrain/collective/publish"
)

// A rank that has polled long enough sleeps until another rank rings its
// doorbell, a futex in the shared memory. Beside the doorbell is the number of
// the rank's goroutines that sleep, or are about to.
//
// No wake-up is lost if the waker stores the word that the sleeper waits for
// before it loads the number of sleepers, and every rank sees that order. The
// sleeper increments the number before it loads the word. So either the waker
// sees the sleeper and rings, or the sleeper sees the word and does not sleep.
// The sleeper reads the doorbell between the two. A ring after that changes the
// doorbell, so that the kernel does not let the sleeper sleep, or wakes it. A
// ring before that makes the word visible to the sleeper.
//
// atomic.StoreUint64 keeps that order by itself. raise does not: it stores with
// publish.Store, and wakeSleepers calls publish.Fence before it looks for
// sleepers.

const sleepMost = 100 * time.Millisecond // then check whether the View is broken

// sleep waits until a rank rings this rank's doorbell, unless the word is already
// at least least. It may return early, so the caller checks the word again.
func (w *waiter) sleep(word *uint64, least uint64) {
	w.sleepUnless(func() bool { return atomic.LoadUint64(word) >= least })
}

// sleepUnless is sleep for several words, or other conditions. Whatever makes over
// return true rings the doorbell afterwards.
func (w *waiter) sleepUnless(over func() bool) {
	atomic.AddUint32(w.asleep(w.self), 1) // before word is loaded; see above
	bell := w.bell(w.self)
	rung := atomic.LoadUint32(bell)
	moved := w.queues.Unsent() && w.push()
	if !moved && !over() && w.under.Err() == nil {
		limit := unix.NsecToTimespec(int64(sleepMost))
		_, _, _ = unix.Syscall6(unix.SYS_FUTEX, uintptr(unsafe.Pointer(bell)), futexWait, uintptr(rung), uintptr(unsafe.Pointer(&limit)), 0, 0)
	}
	atomic.AddUint32(w.asleep(w.self), ^uint32(0))
}

const futexWait, futexWake = 0, 1 // linux/futex.h; not the private ones, which work inside one process only

// wakePeer rings a rank's doorbell if the rank sleeps. Call it after the store that
// the rank may be waiting for. If that store was not by sync/atomic, call
// publish.Fence in between, or the rank may stay asleep.
func (h *hostRanks) wakePeer(peer int) {
	if atomic.LoadUint32(h.asleep(peer)) != 0 {
		h.ringDoorbell(peer)
	}
}

func (h *hostRanks) ringDoorbell(peer int) {
	bell := h.bell(peer)
	atomic.AddUint32(bell, 1)
	_, _, _ = unix.Syscall(unix.SYS_FUTEX, uintptr(unsafe.Pointer(bell)), futexWake, 1<<30)
}

func (h *hostRanks) bell(peer int) *uint32 {
	return (*uint32)(unsafe.Pointer(h.mem.word(h.mem.sleep(peer))))
}

func (h *hostRanks) asleep(peer int) *uint32 {
	return (*uint32)(unsafe.Pointer(h.mem.word(h.mem.sleep(peer) + 8)))
}

// raise stores a flag. It does not wake the ranks that sleep until they see it,
// because looking for sleepers must wait for the fence, and right after the store
// a fence takes as long as the flag needs to reach the other cores. The next call
// of wakeSleepers wakes them: before this rank waits for long, raises another flag,
// or returns.
func (w *waiter) raise(f flag, value uint64) {
	w.wakeSleepers()
	publish.Store(w.myFlags[f], value)
	w.wakeDue = true
}

// raiseStep is raise for a step of a large call. With too few cores, ranks sleep sooner,
// and this rank gives its core away.
func (w *waiter) raiseStep(f flag, value uint64) {
	w.raise(f, value)
	if w.rounds == 0 {
		w.wakeSleepers()
	}
}

// wakeSleepers wakes the ranks that may be asleep although the flag that they
// wait for has been raised.
func (w *waiter) wakeSleepers() {
	if w.wakeDue {
		w.wakeAsleep()
	}
}

func (w *waiter) wakeAsleep() {
	w.wakeDue = false
	publish.Fence()
	w.wakePeers()
}

// nudge wakes the ranks that are known to sleep, before this rank does longer
// work or yields its core. It does without the fence, so it may miss a rank that
// is falling asleep. That rank is left to wakeSleepers.
func (w *waiter) nudge() {
	if w.wakeDue {
		w.wakePeers()
	}
}

func (w *waiter) wakePeers() {
	for peer := range w.ranks {
		if peer != w.self {
			w.wakePeer(peer)
		}
	}
}
