package membership

import (
	"slices"
	"time"
)

// An inquiry asks a few others from time to time for the View that we lack: its
// commit may have been lost, or the job may have started before we came.
type inquiry struct {
	census  *census
	learner *learner
	out     *output
	at      time.Time // when the next questions are due
	gap     time.Duration
	cursor  int // index of the process to ask next
}

// hurry makes the next question due soon, because something has changed.
func (q *inquiry) hurry(now time.Time) {
	q.gap = askFirst
	if at := now.Add(askFirst); at.Before(q.at) {
		q.at = at
	}
}

// ask asks if it is time. A Watcher that holds a View keeps asking at short
// intervals, because only the answers tell it of later Views.
func (q *inquiry) ask(now time.Time) {
	if now.Before(q.at) {
		return
	}
	q.at = now.Add(q.gap)
	q.gap = min(2*q.gap, askMost)
	msg := message{Kind: query}
	if q.census.watches() {
		msg.Kind = watch
	}
	if held := q.learner.held; held != nil {
		msg.Job, msg.Epoch = held.view.Job, held.view.Epoch
		if q.census.watches() {
			q.gap = askFirst
		}
	}
	confidants := q.confidants()
	for range min(askAtOnce, len(confidants)) {
		q.cursor++
		msg.To = confidants[q.cursor%len(confidants)]
		q.out.send(msg)
	}
}

// confidants returns the processes that may know the View that we lack.
func (q *inquiry) confidants() []peer {
	var ps []peer
	if held := q.learner.held; held != nil {
		ps = peersOf(held.view.Members)
	} else {
		ps = q.census.concerned()
	}
	return slices.DeleteFunc(ps, func(p peer) bool { return p == q.census.id })
}
