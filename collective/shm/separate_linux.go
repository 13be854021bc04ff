package shm

import (
	"runtime"
	"slices"

	"golang.org/x/sys/unix"
)

// leaveCores makes the thread of this goroutine leave the given cores, numbered as by
// core, and reports whether it may use others. It may return to them later: the kernel
// wakes a rank on the core of the rank that wakes it, if the other cores are busy just
// then, and may leave both there for many milliseconds.
func leaveCores(cores []uint64) (left bool) {
	return move(func(allowed *unix.CPUSet) {
		for _, c := range cores {
			if known(c) {
				allowed.Clear(int(c) - 1)
			}
		}
	})
}

// known reports whether a number of a core, which may come from memory that others write,
// is one that a CPUSet holds.
func known(core uint64) bool { return 0 < core && core <= uint64(len(unix.CPUSet{})*64) }

// moveTo moves the thread of this goroutine to a core.
func moveTo(core uint64) {
	move(func(allowed *unix.CPUSet) {
		ours := known(core) && allowed.IsSet(int(core)-1)
		allowed.Zero()
		if ours {
			allowed.Set(int(core) - 1)
		}
	})
}

// move moves the thread of this goroutine to one of the cores that limit leaves of those
// that it may use. It may still use all of them afterwards. It returns false if none is
// left.
func move(limit func(allowed *unix.CPUSet)) (moved bool) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	var allowed unix.CPUSet
	if unix.SchedGetaffinity(0, &allowed) != nil {
		return false
	}
	some := allowed
	limit(&some)
	if some.Count() == 0 || unix.SchedSetaffinity(0, &some) != nil {
		return false
	}
	_ = unix.SchedSetaffinity(0, &allowed)
	return true
}

// spread leaves this rank's core if too many ranks showed their last calls there. The
// kernel moves processes from a busy core to another busy one only now and then, and
// three ranks on one of two cores take up to twice as long as two.
func (r *run) spread() {
	t := r.t
	t.on = t.on[:0]
	for i := range t.slots {
		t.on = append(t.on, *t.slots[i][1-r.parity].core)
	}
	if leave := overfull(t.on, t.self, runtime.NumCPU()); len(leave) > 0 {
		leaveCores(leave)
	}
}

// overfull returns which cores a rank is to leave, given those of all ranks: its own, and
// all that have no room either. That is none, unless the rank is the last on a core with
// more ranks than there would be if they were spread evenly.
func overfull(on []uint64, self, cores int) (leave []uint64) {
	even := (len(on) + cores - 1) / cores
	mine := ranksOn(on, on[self])
	if mine <= even || slices.Contains(on[self+1:], on[self]) {
		return nil
	}
	for i, c := range on {
		if !slices.Contains(on[:i], c) && ranksOn(on, c) >= mine-1 {
			leave = append(leave, c)
		}
	}
	return leave
}

func ranksOn(on []uint64, core uint64) (n int) {
	for _, c := range on {
		if c == core {
			n++
		}
	}
	return n
}
