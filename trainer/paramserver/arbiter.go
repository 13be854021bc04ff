package paramserver

import (
	"fmt"
	"slices"
	"time"
)

// An arbiter decides which gradients a server applies in which update. It has no clock and
// does no I/O.
type arbiter struct {
	policy   Policy
	version  int    // updates made
	limit    int    // there is no update after this one
	stopping bool   // the update in progress is the last
	left     []bool // by worker: sends no more gradients
	next     []gradient
	due      time.Time // when the next update stops waiting; zero without a gradient or timeout
	stale    Staleness
	rows     int     // behind all gradients applied
	loss     float64 // summed over them
}

// A gradient is what an arbiter knows about one.
type gradient struct {
	worker  int
	version int // of the values that it was computed on
	rows    int
	loss    float64 // summed over the rows

	staleness int // set by push
}

// An update is a set of gradients that are applied together.
type update struct {
	gradients []gradient // by worker
	rows      int        // behind all of them
	factor    float32    // by which the update is multiplied
}

// newArbiter returns the arbiter of a server that has made this many updates. limit 0 is
// none.
func newArbiter(p Policy, workers, version, limit int) *arbiter {
	if limit == 0 {
		limit = int(^uint(0) >> 1)
	}
	return &arbiter{policy: p, version: version, limit: limit, left: make([]bool, workers)}
}

// done reports whether there is no further update.
func (a *arbiter) done() bool { return a.version >= a.limit }

// push adds a gradient to the next update. If used is false, the gradient is discarded, and
// the worker gets the newest values at once. Otherwise it gets those of the update.
func (a *arbiter) push(g gradient, now time.Time) (used bool, err error) {
	switch {
	case g.version < 0 || g.version > a.version || g.rows < 0:
		return false, fmt.Errorf("paramserver: worker %d sends a gradient of %d rows for version %d, and the newest version is %d: run the same version of the program on every machine", g.worker, g.rows, g.version, a.version)
	case a.left[g.worker], slices.ContainsFunc(a.next, func(o gradient) bool { return o.worker == g.worker }):
		return false, fmt.Errorf("paramserver: worker %d sends a gradient before the answer to the last, or after its end: run the same version of the program on every machine", g.worker)
	}
	if a.done() {
		a.stale.Unused++
		return false, nil
	}
	g.staleness = a.version - g.version
	a.stale.note(g.staleness)
	if a.policy.late(g.staleness) && !a.policy.Damp {
		a.stale.Dropped++
		return false, nil
	}
	if len(a.next) == 0 && a.policy.Timeout > 0 {
		a.due = now.Add(a.policy.Timeout)
	}
	a.next = append(a.next, g)
	return true, nil
}

// ready reports whether to make the next update.
func (a *arbiter) ready(now time.Time) bool {
	if len(a.next) == 0 || a.stopping {
		return len(a.next) > 0
	}
	here := 0
	for _, left := range a.left {
		if !left {
			here++
		}
	}
	return len(a.next) >= min(a.policy.quorum(), here) || !a.due.IsZero() && !now.Before(a.due)
}

// take begins the next update.
func (a *arbiter) take() update {
	u := update{gradients: a.next, factor: 1}
	slices.SortFunc(u.gradients, func(g, o gradient) int { return g.worker - o.worker })
	sum := 0.
	for _, g := range u.gradients {
		u.rows += g.rows
		a.loss += g.loss
		if !a.policy.late(g.staleness) {
			a.stale.Applied++
			sum++
			continue
		}
		a.stale.Damped++
		sum += 1 / float64(1+g.staleness)
	}
	u.factor = float32(sum / float64(len(u.gradients)))
	a.rows += u.rows
	a.version++
	a.next, a.due = nil, time.Time{}
	return u
}

// stop ends the training with an update of the gradients that have come.
func (a *arbiter) stop() {
	a.stopping = true
	a.limit = min(a.limit, a.version+min(len(a.next), 1))
}

// leave notes that a worker sends no more gradients. One that has come stays.
func (a *arbiter) leave(worker int) { a.left[worker] = true }
