package membership

import (
	"slices"
	"time"

	"github.com/ringtrain/ringtrain/collective"
)

// A run is one ballot of ours, from prepare to commit.
type run struct {
	ballot   ballot
	asked    []peer              // got our prepare
	promises map[peer]*vote      // of each process that promised: what it had accepted, or nil
	fresh    []collective.Member // the first View to propose unless another must be finished
	motion   *motion             // nil until something is proposed
	since    time.Time           // when the present phase began
	resend   struct {
		at  time.Time
		gap time.Duration
	}
}

// A motion is what a run has proposed and what it still needs.
type motion struct {
	vote     *vote
	targets  []peer // got our propose
	await    []peer // all of these must accept before we commit,
	voters   []peer // and need of these
	need     int
	accepted map[peer]bool
}

func (d *motion) done() bool {
	yes := func(ps []peer) (n int) {
		for _, p := range ps {
			if d.accepted[p] {
				n++
			}
		}
		return n
	}
	return yes(d.await) == len(d.await) && yes(d.voters) >= d.need
}

func (r *run) rearm(now time.Time, gap time.Duration) {
	r.resend.gap = min(gap, resendMost)
	r.resend.at = now.Add(r.resend.gap)
}

// unanswered returns the processes that owe an answer in this phase.
func (r *run) unanswered() []peer {
	if d := r.motion; d != nil {
		return slices.DeleteFunc(slices.Clone(d.targets), func(p peer) bool { return d.accepted[p] })
	}
	return slices.DeleteFunc(slices.Clone(r.asked), r.promised)
}

// promised reports whether p has promised our ballot.
func (r *run) promised(p peer) bool {
	_, ok := r.promises[p]
	return ok
}

// heardOf counts the members of v that have promised.
func (r *run) heardOf(v collective.View) (n int) {
	for _, p := range peersOf(v.Members) {
		if r.promised(p) {
			n++
		}
	}
	return n
}

// mayBeDecided reports whether need of the voters may have accepted v under its
// ballot: those whose promise we lack, and those that reported it or a higher one.
// All others have now promised never to accept it.
func (r *run) mayBeDecided(v *vote, voters []peer, need int) bool {
	possible := 0
	for _, p := range voters {
		last, promised := r.promises[p]
		if !promised || last != nil && !last.Ballot.less(v.Ballot) {
			possible++
		}
	}
	return possible >= need
}
