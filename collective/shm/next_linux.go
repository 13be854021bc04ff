package shm

import (
	"context"
	"runtime"
	"slices"
	"sync/atomic"

	"golang.org/x/sys/unix"

	"github.com/ringtrain/ringtrain/collective"
)

// next is Abilities.Next. It looks into the rings of the ranks of this host, and sleeps
// until a rank, the end of ctx or the farListener rings this rank's doorbell.
func (w *waiter) next(ctx context.Context, from []int, h *collective.Header) (rank int, err error) {
	defer runtime.KeepAlive(w)
	w.now = h
	if !w.far.asked {
		w.far.look(w.farOf(from))
	}
	for tries := 1; ; tries++ {
		if rank, err := w.arrived(from, h); rank >= 0 || err != nil {
			return rank, err
		}
		if err := w.under.Err(); err != nil {
			return -1, err
		}
		if ctx.Err() != nil {
			return -1, nil
		}
		if !w.far.asked {
			w.far.listen(w.farOf(from))
		}
		if tries%goschedEvery == 0 || w.rounds == 0 && tries%judgeEvery == 0 {
			runtime.Gosched() // for heartbeats, and for ranks that are goroutines of this process
		}
		if tries < w.yields {
			_, _, _ = unix.RawSyscall(unix.SYS_SCHED_YIELD, 0, 0, 0)
			continue
		}
		if err := w.judgeAll(from); err != nil {
			return -1, err
		}
		w.sleepUntilNext(ctx, from)
	}
}

// arrived returns the first rank of from whose message has arrived, and copies its
// header to h, or -1.
func (w *waiter) arrived(from []int, h *collective.Header) (rank int, err error) {
	for _, r := range from {
		peer := w.index[r]
		if peer < 0 {
			if a := w.far.arrived.Load(); a != nil && (a.err != nil || a.rank == r) {
				*h = a.h
				w.far.forget()
				return a.rank, a.err
			}
			continue
		}
		if l := &w.in[peer]; l.arrived() {
			w.syncWithSenders()
			h.Get(l.at(l.consumed, collective.HeaderSize))
			return r, nil
		}
	}
	return -1, nil
}

// arrived reports whether a message has begun to arrive.
func (l *inRing) arrived() bool {
	return atomic.LoadUint64(l.head) >= l.consumed+collective.HeaderSize
}

// judgeAll returns why the wait for a rank of this host can never end, or nil.
func (w *waiter) judgeAll(from []int) error {
	for _, r := range from {
		if peer := w.index[r]; peer >= 0 {
			l := &w.in[peer]
			if err := w.judge(l.head, l.consumed+collective.HeaderSize, peer, aMessage); err != nil {
				return err
			}
		}
	}
	return nil
}

// sleepUntilNext sleeps until there may be something for next.
func (w *waiter) sleepUntilNext(ctx context.Context, from []int) {
	defer collective.WakeOnCancel(ctx, func() { w.ringDoorbell(w.self) })()
	w.sleepUnless(func() bool {
		return ctx.Err() != nil || w.far.arrived.Load() != nil || slices.ContainsFunc(from, func(r int) bool {
			peer := w.index[r]
			if peer < 0 {
				return false
			}
			_, differs := w.otherCall(peer, aMessage)
			return differs || w.in[peer].arrived() || w.under.Left(r)
		})
	})
}

// farOf returns the ranks of other hosts.
func (w *waiter) farOf(from []int) []int {
	if w.oneHost {
		return nil
	}
	return slices.DeleteFunc(slices.Clone(from), func(r int) bool { return w.index[r] >= 0 })
}
