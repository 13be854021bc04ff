package membership

import "time"

// How long the protocol waits, all in the time that is handed to the machine.
const (
	resendFirst = 200 * time.Millisecond // an unanswered message is sent again after this,
	resendMost  = 2 * time.Second        // then after twice the time, up to this
	patience    = time.Second            // what another proposer gets to finish
	turnGap     = 250 * time.Millisecond // what each lower rank gets to begin with a later View,
	turnMost    = time.Second            // and all of them together
	grace       = time.Second            // what members get to answer before a later View leaves them out
	askFirst    = 500 * time.Millisecond // who has no View asks others for it,
	askMost     = 5 * time.Second        // less and less often
	askAtOnce   = 3                      // that many at a time
)

// pace says when this process may propose and when it asks others.
type pace struct {
	round  uint64    // the highest ballot round seen in the instance
	hold   time.Time // no ballot of our own before
	askAt  time.Time
	askGap time.Duration
	cursor int // who is asked next
}

func newPace(now time.Time) pace { return pace{askAt: now.Add(askFirst), askGap: askFirst} }

// saw remembers a ballot, so that our next one is above it.
func (p *pace) saw(b ballot) { p.round = max(p.round, b.Round) }

// yield leaves the field to another proposer. The random part lets one of two
// rivals win.
func (p *pace) yield(now time.Time, random func() uint64) {
	p.hold = now.Add(patience + time.Duration(random()%uint64(patience)))
}

// pause puts our own next ballot off.
func (p *pace) pause(now time.Time, d time.Duration) { p.hold = now.Add(d) }

// hurry makes the next question due soon, because there is something new.
func (p *pace) hurry(now time.Time) {
	p.askGap = askFirst
	if at := now.Add(askFirst); at.Before(p.askAt) {
		p.askAt = at
	}
}

// installed starts the next instance.
func (p *pace) installed() { p.round, p.hold = 0, time.Time{} }
