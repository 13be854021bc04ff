package membership

import (
	"slices"
	"strings"
	"time"

	"github.com/hashicorp/memberlist"

	"github.com/ringtrain/ringtrain/collective"
)

// Letters with which a process asks another whether it is there, and replies. Every
// version of gossip has them, so that errors can name a process of another version.
const (
	callMark = 0x3a
	hereMark = 0x3b
)

// How often a process that does not answer is called. The first calls are
// datagrams, which are cheap and usually arrive; later ones are streams.
const (
	callFirst     = 250 * time.Millisecond // first interval, which doubles
	callMost      = 2 * time.Second        // up to this
	callDatagrams = 2                      // calls by datagram
	callInVain    = 4                      // calls without an answer, after which a user should know
)

// A roll has the processes that answered this start of this process. Gossip that
// was recorded in an earlier job with the same key is still valid and shows
// processes that are gone, but these cannot answer. The vote learns of a process
// only after it has answered. A roll has no clock and no socket.
type roll struct {
	random func() uint64
	here   map[peer]bool
	calls  map[peer]*call // to those that have not answered
}

// A call is a question that only a live process can answer.
type call struct {
	who   candidate
	id    uint64 // random, one for each process
	tries int
	gap   time.Duration
	next  time.Time
}

func newRoll(random func() uint64) *roll {
	return &roll{random: random, here: map[peer]bool{}, calls: map[peer]*call{}}
}

// see records a process that gossip shows, and reports whether it has answered.
func (r *roll) see(now time.Time, c candidate) bool {
	p := peerOf(c.Member)
	switch q := r.calls[p]; {
	case r.here[p]:
		return true
	case q != nil:
		q.who = c
	default:
		r.calls[p] = &call{who: c, id: r.random(), gap: callFirst, next: now}
	}
	return false
}

// gone forgets a process that gossip has given up. If it returns, it is called
// again.
func (r *roll) gone(p peer) {
	delete(r.here, p)
	delete(r.calls, p)
}

// due returns the calls to make now.
func (r *roll) due(now time.Time) (calls []call) {
	for _, q := range r.calls {
		if now.Before(q.next) {
			continue
		}
		calls = append(calls, *q)
		q.tries++
		q.next, q.gap = now.Add(q.gap), min(2*q.gap, callMost)
	}
	return calls
}

// answered returns the process if this is its first answer.
func (r *roll) answered(p peer, id uint64) (c candidate, ok bool) {
	q := r.calls[p]
	if q == nil || q.id != id {
		return candidate{}, false
	}
	delete(r.calls, p)
	r.here[p] = true
	return q.who, true
}

// deaf returns the processes that have been called in vain, by name.
func (r *roll) deaf() (all []candidate) {
	if r == nil {
		return nil
	}
	for _, q := range r.calls {
		if q.tries >= callInVain {
			all = append(all, q.who)
		}
	}
	slices.SortFunc(all, func(a, b candidate) int { return strings.Compare(a.Name, b.Name) })
	return all
}

// idle reports whether there are no calls to repeat.
func (r *roll) idle() bool { return r == nil || len(r.calls) == 0 }

// callsRoll reports whether processes that gossip shows must answer. Without a key,
// anyone who can send gossip can also answer. A Watcher has no vote, and shows even
// processes that are stopped and cannot answer.
func (c *Config) callsRoll() bool {
	return c.Key != nil && c.Member.Role != collective.Watcher
}

// callRoll calls the processes that have not answered.
func (a *Agent) callRoll(now time.Time) {
	if a.roll.idle() {
		return
	}
	for _, q := range a.roll.due(now) {
		p := peerOf(q.who.Member)
		at, ok := a.known[p]
		if !ok {
			continue
		}
		l := letter{mark: callMark, from: a.machine.id, to: p, at: a.Addr(), id: q.id}
		if q.tries >= callDatagrams {
			l.body = []byte{1}
		}
		a.send(at, l)
	}
}

// send sends a letter over a stream if it has a body, else as a datagram.
func (a *Agent) send(to memberlist.Node, l letter) {
	if len(l.body) > 0 {
		a.out.put(to, l.encode())
		return
	}
	if err := a.list.SendBestEffort(&to, l.encode()); err != nil {
		a.cfg.Log.Debug("datagram not sent", "to", to.Name, "error", err)
	}
}

// called answers a call in the way that it came.
func (a *Agent) called(l letter) {
	a.send(a.whereabouts(l), letter{mark: hereMark, from: l.to, to: l.from, at: a.Addr(), id: l.id, body: l.body})
}

// present handles the answer to a call.
func (a *Agent) present(now time.Time, l letter) {
	if a.roll == nil {
		return
	}
	if c, first := a.roll.answered(l.from, l.id); first {
		a.machine.Up(now, c)
	}
}

// whereabouts returns the address of a letter's sender, which gossip may not have
// announced yet.
func (a *Agent) whereabouts(l letter) memberlist.Node {
	if at, ok := a.known[l.from]; ok {
		return at
	}
	return memberlist.Node{Name: l.from.gossipName(), Addr: l.at.Addr().AsSlice(), Port: l.at.Port()}
}
