package membership

import "time"

// How long the protocol waits, in the time that the machine is given.
const (
	resendFirst = 200 * time.Millisecond // until an unanswered message is sent again; doubles,
	resendMost  = 2 * time.Second        // up to this
	patience    = time.Second            // for another proposer to finish
	turnGap     = 250 * time.Millisecond // for each lower rank to start a later View,
	turnMost    = time.Second            // and for all of them together
	grace       = time.Second            // for members to answer before a later View leaves them out
	askFirst    = 500 * time.Millisecond // between questions for a View that we lack; doubles,
	askMost     = 5 * time.Second        // up to this
	askAtOnce   = 3                      // processes that are asked at a time
)

// A ballotTimer decides when this process may propose, and under which ballot.
type ballotTimer struct {
	round uint64    // the highest ballot round seen in the instance
	hold  time.Time // no ballot of our own before this
}

// saw records a ballot, so that our next one is higher.
func (t *ballotTimer) saw(b ballot) { t.round = max(t.round, b.Round) }

// yield gives another proposer time to finish. The random part lets one of two
// rivals win.
func (t *ballotTimer) yield(now time.Time, random func() uint64) {
	t.hold = now.Add(patience + time.Duration(random()%uint64(patience)))
}

// pause delays our own next ballot.
func (t *ballotTimer) pause(now time.Time, d time.Duration) { t.hold = now.Add(d) }

// installed starts the next instance.
func (t *ballotTimer) installed() { t.round, t.hold = 0, time.Time{} }
