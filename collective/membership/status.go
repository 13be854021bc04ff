package membership

import (
	"context"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/ringtrain/ringtrain/collective"
)

// status has what the Agent's goroutine publishes to callers and to the joiner.
type status struct {
	mu       sync.Mutex
	agreed   *collective.View
	excluded *exclusion
	verdict  error                      // why there can be no View
	seen     map[peer]collective.Member // processes that gossip believes alive
	outlook  *outlook                   // nil unless a later View is wanted
	waiting  Waiting
	line     string // waiting as last reported
	failures []Seed
	visitors []visitor         // processes that were turned away
	away     map[peer]vanished // members of the View that gossip gave up
	meet     []string          // addresses to join once
	soon     chan struct{}     // gets a value when meet does
	closed   bool
	changed  chan struct{} // closed and replaced when View may return
}

// vanished has the address of a member, and when gossip gave it up.
type vanished struct {
	addr  string
	since time.Time
}

func newStatus(self collective.Member) *status {
	return &status{
		seen: map[peer]collective.Member{peerOf(self): self}, away: map[peer]vanished{},
		soon: make(chan struct{}, 1), changed: make(chan struct{}),
	}
}

// announce wakes all waiters. The lock is held.
func (s *status) announce() {
	close(s.changed)
	s.changed = make(chan struct{})
}

func (s *status) install(v collective.View) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.agreed = &v
	for p := range s.away { // a process that is left out joins us, not we it
		if rankOf(v.Members, p) < 0 {
			delete(s.away, p)
		}
	}
	s.announce()
}

func (s *status) exclude(e *exclusion) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.excluded != e {
		s.excluded = e
		s.announce()
	}
}

// fail stores why there can be no View; nil changes nothing.
func (s *status) fail(verdict error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.verdict == nil && verdict != nil {
		s.verdict = verdict
		s.announce()
	}
}

func (s *status) close() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.closed = true
	s.announce()
}

// wait adds failed seeds and visitors to w, stores it, and reports whether its text
// has changed.
func (s *status) wait(w Waiting) (Waiting, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	w.Seeds, w.Visitors = s.failures, nil
	for _, v := range s.visitors {
		w.Visitors = append(w.Visitors, v.String())
	}
	line := w.String()
	changed := line != s.line
	s.waiting, s.line = w, line
	return w, changed
}

// unreached stores the seeds that cannot be joined and reports a change.
func (s *status) unreached(failures []Seed) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	changed := !slices.Equal(s.failures, failures)
	s.failures = failures
	return changed
}

// maxVisitors is how many visitors are remembered.
const maxVisitors = 8

// visited stores a process that was turned away, and reports whether it is new. Anybody can send
// names of clusters, so an address has one entry for those. A visitor with another key, which
// probably belongs to the job, replaces such an entry: that of its address, or any if there are
// too many.
func (s *status) visited(v visitor) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	find := func(fits func(x visitor) bool) int { return slices.IndexFunc(s.visitors, fits) }
	if find(func(x visitor) bool { return x.from == v.from && (x.problem == v.problem || !v.key) }) >= 0 {
		return false
	}
	at := find(func(x visitor) bool { return x.from == v.from && !x.key })
	if at < 0 && len(s.visitors) < maxVisitors {
		s.visitors = append(s.visitors, v)
		return true
	}
	if at < 0 {
		at = find(func(x visitor) bool { return v.key && !x.key })
	}
	if at < 0 {
		return false
	}
	s.visitors[at] = v
	return true
}

// down stores that gossip has given up p.
func (s *status) down(p peer) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.seen, p)
}

// vanished stores the address of a member of the View that gossip has given up.
func (s *status) vanished(p peer, addr string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.away[p] = vanished{addr, time.Now()}
}

// up stores that gossip sees m.
func (s *status) up(m collective.Member) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.seen[peerOf(m)] = m
	delete(s.away, peerOf(m))
}

// members returns the processes that gossip sees, by (Node, Local).
func (s *status) members() []collective.Member {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.SortedFunc(maps.Values(s.seen), rankOrder)
}

// join makes the joiner join a process once, without delay.
func (s *status) join(addr string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.meet = append(s.meet, addr)
	select {
	case s.soon <- struct{}{}:
	default:
	}
}

// met returns the addresses that join got since the last time.
func (s *status) met() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	addrs := s.meet
	s.meet = nil
	return addrs
}

// lost returns the addresses of members of the View that gossip gave up less than
// awayMost ago, and whether there is a View.
func (s *status) lost() ([]string, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	var addrs []string
	for p, v := range s.away {
		if time.Since(v.since) > awayMost {
			delete(s.away, p)
			continue
		}
		addrs = append(addrs, v.addr)
	}
	return addrs, s.agreed != nil
}

// foresee stores the outlook for a wanted View. It wakes waiters when the View
// becomes short of members, or no longer is.
func (s *status) foresee(o *outlook) {
	s.mu.Lock()
	defer s.mu.Unlock()
	before := s.outlook
	s.outlook = o
	if before.shortSince() != o.shortSince() {
		s.announce()
	}
}

// view waits for the first View.
func (s *status) view(ctx context.Context, self collective.Member) (collective.View, error) {
	for {
		s.mu.Lock()
		agreed, excluded, verdict, closed, waiting, changed := s.agreed, s.excluded, s.verdict, s.closed, s.waiting, s.changed
		s.mu.Unlock()
		switch {
		case closed:
			return collective.View{}, ErrClosed
		case agreed != nil:
			return ownCopy(*agreed), nil
		case excluded != nil:
			return collective.View{}, &CompleteError{Member: self, By: excluded.by.Name, Job: excluded.job}
		case verdict != nil:
			return collective.View{}, verdict
		case ctx.Err() != nil:
			return collective.View{}, &WaitError{Waiting: waiting, Err: context.Cause(ctx)}
		}
		select {
		case <-changed:
		case <-ctx.Done():
		}
	}
}

// next waits for a View of a higher epoch than after's.
func (s *status) next(ctx context.Context, self collective.Member, after collective.View) (collective.View, error) {
	began := time.Now()
	for {
		s.mu.Lock()
		agreed, excluded, closed, o, changed := s.agreed, s.excluded, s.closed, s.outlook, s.changed
		s.mu.Unlock()
		var patience <-chan time.Time
		since := o.shortSince()
		if !since.IsZero() {
			if since.Before(began) { // the outlook may be that of an earlier call
				since = began
			}
			patience = time.After(time.Until(since.Add(minorityPatience)))
		}
		switch {
		case closed:
			return collective.View{}, ErrClosed
		case agreed != nil && agreed.Epoch > after.Epoch:
			return ownCopy(*agreed), nil
		case excluded != nil:
			return collective.View{}, &ExpelledError{Member: self, By: excluded.by.Name, Job: excluded.job, Epoch: excluded.epoch}
		case ctx.Err() != nil:
			return collective.View{}, o.explain(after, context.Cause(ctx))
		case patience != nil && time.Since(since) >= minorityPatience:
			return collective.View{}, o.explain(after, nil)
		}
		select {
		case <-changed:
		case <-patience:
		case <-ctx.Done():
		}
	}
}

// ownCopy returns v with its own members, so that the caller may change them.
func ownCopy(v collective.View) collective.View {
	v.Members = slices.Clone(v.Members)
	return v
}
