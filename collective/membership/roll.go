package membership

import (
	"time"

	"github.com/hashicorp/memberlist"

	"github.com/ringtrain/ringtrain/collective"
)

// Letters by which a process asks another whether it is there, and says that it
// is. Every version of gossip has them, so that a process of another version can
// be named.
const (
	callMark = 0x3a
	hereMark = 0x3b
)

// How often a process is asked that does not answer. The first times it is by
// datagrams, which are cheap and mostly arrive, then by streams.
const (
	callFirst     = 250 * time.Millisecond
	callMost      = 2 * time.Second
	callDatagrams = 2
)

// A roll is who has answered this start of this process. Gossip that was recorded
// in an earlier job with the same key is as valid as it was then, and shows
// processes that are gone: they answer no more. The vote hears of a process once
// it has answered. A roll has no clock and no socket.
type roll struct {
	random func() uint64
	here   map[peer]bool
	calls  map[peer]*call // those who have not answered
}

// A call is a question that only a process that lives can answer.
type call struct {
	who   candidate
	id    uint64 // drawn anew for each process
	tries int
	gap   time.Duration
	next  time.Time
}

func newRoll(random func() uint64) *roll {
	return &roll{random: random, here: map[peer]bool{}, calls: map[peer]*call{}}
}

// see takes note of a process that gossip shows, and reports whether it has
// answered.
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

// gone forgets a process that gossip has given up: if it comes back it is asked
// again.
func (r *roll) gone(p peer) {
	delete(r.here, p)
	delete(r.calls, p)
}

// due are the calls to make now.
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

// answered returns the process that has just answered for the first time.
func (r *roll) answered(p peer, id uint64) (c candidate, ok bool) {
	q := r.calls[p]
	if q == nil || q.id != id {
		return candidate{}, false
	}
	delete(r.calls, p)
	r.here[p] = true
	return q.who, true
}

// idle reports whether nobody is to be asked again.
func (r *roll) idle() bool { return r == nil || len(r.calls) == 0 }

// callsRoll reports whether those whom gossip shows must answer. Without a key
// whoever can send gossip can answer, too; and a Watcher, which has no vote, shows
// everybody, also who is stopped and cannot answer.
func (c *Config) callsRoll() bool {
	return c.Key != nil && c.Member.Role != collective.Watcher
}

// callRoll asks those who have not answered.
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

// send sends a letter by a stream if its body says so, else by a datagram.
func (a *Agent) send(to memberlist.Node, l letter) {
	if len(l.body) > 0 {
		a.out.put(to, l.encode())
		return
	}
	if err := a.list.SendBestEffort(&to, l.encode()); err != nil {
		a.cfg.Log.Debug("datagram not sent", "to", to.Name, "error", err)
	}
}

// called says that this process is there, in the way that it was asked.
func (a *Agent) called(l letter) {
	a.send(a.whereabouts(l), letter{mark: hereMark, from: l.to, to: l.from, at: a.Addr(), id: l.id, body: l.body})
}

// present takes the answer of a process.
func (a *Agent) present(now time.Time, l letter) {
	if a.roll == nil {
		return
	}
	if c, first := a.roll.answered(l.from, l.id); first {
		a.machine.Up(now, c)
	}
}

// whereabouts is where the sender of a letter is. Gossip need not have brought
// it here yet.
func (a *Agent) whereabouts(l letter) memberlist.Node {
	if at, ok := a.known[l.from]; ok {
		return at
	}
	return memberlist.Node{Name: l.from.gossipName(), Addr: l.at.Addr().AsSlice(), Port: l.at.Port()}
}
