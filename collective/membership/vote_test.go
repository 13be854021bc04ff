package membership

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ringtrain/ringtrain/collective"
)

// A stage has machines whose messages the test delivers by hand.
type stage struct {
	t   *testing.T
	now time.Time
	of  map[string]*machine
	all []*machine
	out []message // sent, not delivered
	job uint64

	drop func(message) bool // if not nil, selects messages to lose
}

// newStage starts machines that see each other, one worker each, and expect nodes
// machines. A name is a letter; a digit after it makes a new start of that process.
func newStage(t *testing.T, nodes int, names ...string) *stage {
	s := &stage{t: t, now: time.Unix(0, 0), of: map[string]*machine{}}
	for _, name := range names {
		s.add(name, nodes)
	}
	return s
}

func (s *stage) add(name string, nodes int) *machine {
	self := collective.Member{Name: name[:1], Nonce: uint64(len(name)), Node: name[:1], LocalSize: 1}
	s.job += 100
	job := s.job
	m := newMachine(s.now, expects(self, nodes), func() uint64 { return job })
	s.of[name] = m
	for _, other := range s.all {
		other.Up(s.now, expects(self, nodes))
		m.Up(s.now, other.census.self)
		s.collect(other)
	}
	s.all = append(s.all, m)
	s.collect(m)
	return m
}

func (s *stage) collect(m *machine) {
	messages, _ := m.drain()
	s.out = append(s.out, messages...)
}

// deliver delivers the oldest message of a kind to a machine from another ("" for
// any).
func (s *stage) deliver(k kind, from, to string) {
	s.t.Helper()
	for i, msg := range s.out {
		if msg.Kind == k && msg.To == s.of[to].id && (from == "" || msg.From == s.of[from].id) {
			s.out = append(s.out[:i:i], s.out[i+1:]...)
			s.of[to].Receive(s.now, msg)
			s.collect(s.of[to])
			return
		}
	}
	require.Failf(s.t, "no such message", "%v from %q to %q among %v", k, from, to, s.out)
}

// kill tells all others that a machine is gone.
func (s *stage) kill(name string) {
	dead := s.of[name]
	delete(s.of, name)
	for i, m := range s.all {
		if m == dead {
			s.all = append(s.all[:i:i], s.all[i+1:]...)
			break
		}
	}
	for _, m := range s.all {
		m.Down(s.now, dead.id)
		s.collect(m)
	}
}

// deliverAll delivers all messages between live machines and lets time pass, until no
// message is left.
func (s *stage) deliverAll() {
	for range 100 {
		for len(s.out) > 0 {
			msg := s.out[0]
			s.out = s.out[1:]
			for _, m := range s.all {
				if m.id == msg.To && (s.drop == nil || !s.drop(msg)) {
					m.Receive(s.now, msg)
					s.collect(m)
				}
			}
		}
		s.now = s.now.Add(simTick)
		for _, m := range s.all {
			m.Tick(s.now)
			s.collect(m)
		}
	}
}

// view returns the names of the members of a machine's View.
func (s *stage) view(name string) string {
	h := s.of[name].learner.held
	if h == nil {
		return ""
	}
	var names string
	for _, m := range h.view.Members {
		names += m.Name
	}
	return names
}

func TestLowestProposesOnceAllAreThere(t *testing.T) {
	s := newStage(t, 3, "c", "b")
	s.deliverAll()
	require.Nil(t, s.of["b"].learner.held)
	require.Equal(t, 1, s.of["b"].waiting().MissingNodes)
	s.add("a", 3)
	for _, msg := range s.out {
		require.True(t, msg.Kind != prepare || msg.From.Name == "a", "%v is not the lowest", msg.From)
	}
	require.Equal(t, []string{"a"}, s.of["c"].waiting().Unanswered)
	require.Equal(t, []string{"b", "c"}, s.of["a"].waiting().Unanswered)
	s.deliverAll()
	for _, name := range []string{"a", "b", "c"} {
		require.Equal(t, "abc", s.view(name))
		require.Equal(t, s.of["a"].learner.held.view.Job, s.of[name].learner.held.view.Job)
		require.True(t, s.of[name].idle())
	}
}

// proposed returns a stage of three in which a has proposed.
func proposed(t *testing.T) *stage {
	s := newStage(t, 3, "a", "b", "c")
	for _, name := range []string{"b", "c"} {
		s.deliver(prepare, "a", name)
		s.deliver(promise, name, "a")
	}
	return s
}

func TestSuccessorFinishesWhatAllAccepted(t *testing.T) {
	s := proposed(t)
	s.deliver(propose, "a", "b")
	s.deliver(propose, "a", "c")
	s.deliver(accept, "b", "a")
	s.deliver(accept, "c", "a")
	require.Equal(t, "abc", s.view("a"), "decided")
	job := s.of["a"].learner.held.view.Job
	s.kill("a")
	s.out = nil // the commits are lost
	s.deliverAll()
	for _, name := range []string{"b", "c"} {
		require.Equal(t, "abc", s.view(name), "a may have begun: the same View, a's death comes later")
		require.Equal(t, job, s.of[name].learner.held.view.Job)
	}
	late := s.add("aa", 3)
	s.deliverAll()
	require.Nil(t, late.learner.held)
	require.NotNil(t, late.learner.excluded)
}

func TestSuccessorDropsWhatOneDidNotAccept(t *testing.T) {
	s := proposed(t)
	s.deliver(propose, "a", "b")
	s.kill("a")
	stale := s.out
	s.out = nil
	s.deliverAll()
	require.Nil(t, s.of["b"].learner.held, "c did not accept and never will")
	s.out = append(s.out, stale...)
	s.deliverAll()
	require.Nil(t, s.of["c"].learner.held, "the late proposal is refused")
	s.add("aa", 3)
	s.deliverAll()
	for _, name := range []string{"aa", "b", "c"} {
		require.Equal(t, "abc", s.view(name))
		require.Equal(t, s.of["aa"].id, peerOf(s.of[name].learner.held.view.Members[0]))
	}
}

func TestLoneSurvivorWaitsForTheOthers(t *testing.T) {
	s := proposed(t)
	s.deliver(propose, "a", "b")
	s.deliver(propose, "a", "c")
	s.out = nil
	s.kill("a")
	s.kill("b")
	s.out = nil
	s.deliverAll()
	require.Nil(t, s.of["c"].learner.held, "no member is left to train with")
	s.add("aa", 3)
	s.add("bb", 3)
	s.deliverAll()
	require.Equal(t, "abc", s.view("c"))
	require.Equal(t, s.view("c"), s.view("aa"))
}

func TestLateCommitOfAnAbandonedViewIsIgnored(t *testing.T) {
	s := proposed(t)
	s.deliver(propose, "a", "b")
	s.deliver(propose, "a", "c")
	s.deliver(accept, "b", "a")
	s.deliver(accept, "c", "a")
	old := s.out[len(s.out)-1]
	require.Equal(t, commit, old.Kind)
	require.Equal(t, s.of["c"].id, old.To)
	s.kill("a")
	s.kill("b")
	s.out = nil
	s.deliverAll()
	// The others return. c accepts their View, then hears of the old one.
	s.add("aa", 3)
	s.add("bb", 3)
	s.drop = func(msg message) bool { return msg.Kind == accept }
	s.deliverAll()
	require.Equal(t, s.of["aa"].id, s.of["c"].acceptor.accepted.Ballot.By)
	s.of["c"].Receive(s.now, old)
	require.Nil(t, s.of["c"].learner.held)
	s.drop = nil
	s.deliverAll()
	require.Equal(t, s.of["aa"].learner.held.view.Job, s.of["c"].learner.held.view.Job)
}

func TestNextViewNeedsAMajority(t *testing.T) {
	s := newStage(t, 4, "a", "b", "c", "d")
	s.deliverAll()
	s.kill("a")
	for _, m := range s.all {
		m.Next(s.now, nil)
	}
	s.deliverAll()
	for _, name := range []string{"b", "c", "d"} {
		require.Equal(t, "bcd", s.view(name))
		require.Equal(t, uint64(2), s.of[name].learner.held.view.Epoch)
	}
	s.kill("b")
	s.kill("c")
	s.of["d"].Next(s.now, nil)
	s.deliverAll()
	require.Equal(t, "bcd", s.view("d"), "one of three is no majority")
	require.False(t, s.of["d"].idle())
}

func TestNextViewOfTwoNeedsBoth(t *testing.T) {
	s := newStage(t, 2, "a", "b")
	s.deliverAll()
	s.of["a"].Next(s.now, nil)
	s.deliverAll()
	require.Equal(t, uint64(2), s.of["b"].learner.held.view.Epoch, "the same members again")
	s.kill("b")
	s.of["a"].Next(s.now, nil)
	s.deliverAll()
	require.Equal(t, uint64(2), s.of["a"].learner.held.view.Epoch)
}

func TestNextViewLeavesOutWhoTheDataPlaneLost(t *testing.T) {
	s := newStage(t, 3, "a", "b", "c")
	s.deliverAll()
	lost := s.of["a"].id // gossip still sees it
	s.of["b"].Next(s.now, []peer{lost})
	s.of["c"].Next(s.now, []peer{lost})
	s.deliverAll()
	require.Equal(t, "bc", s.view("b"))
	require.Equal(t, "bc", s.view("c"))
	s.of["a"].Next(s.now, nil)
	s.deliverAll()
	require.Equal(t, "abc", s.view("a"))
	require.NotNil(t, s.of["a"].learner.excluded, "a learns that it was left out")
}

func TestAssemble(t *testing.T) {
	worker := func(node string, local, size int) collective.Member {
		return collective.Member{Name: node + string(rune('0'+local)), Nonce: 1, Node: node, Local: local, LocalSize: size}
	}
	twin := worker("m", 0, 1)
	twin.Nonce = 2
	watcher := worker("w", 0, 1)
	watcher.Role = collective.Watcher
	for _, test := range []struct {
		name  string
		nodes int
		seen  []collective.Member
		want  string // names of the members,
		line  string // or what the process waits for
	}{
		{"alone", 0, []collective.Member{worker("m", 0, 1)}, "m0", ""},
		{"others do not matter", 1, []collective.Member{worker("a", 0, 1), worker("m", 0, 1)}, "m0", ""},
		{"local", 1, []collective.Member{worker("m", 1, 2), worker("m", 0, 2)}, "m0m1", ""},
		{"local missing", 1, []collective.Member{worker("m", 0, 3), worker("m", 2, 3)}, "", "waiting for worker 1 on m (2 of 3 workers have joined)"},
		{"by node", 2, []collective.Member{worker("m", 1, 2), worker("b", 0, 1), worker("m", 0, 2)}, "b0m0m1", ""},
		{"node missing", 2, []collective.Member{worker("m", 0, 1)}, "", "waiting for 1 more machine (1 of 2 workers have joined)"},
		{"worker of another missing", 2, []collective.Member{worker("m", 0, 1), worker("z", 0, 2)}, "", "waiting for worker 1 on z (2 of 3 workers have joined)"},
		{"too many machines", 2, []collective.Member{worker("z", 0, 1), worker("m", 0, 1), worker("a", 0, 1), worker("b", 0, 2)}, "a0m0", ""},
		{"watchers do not count", 2, []collective.Member{worker("m", 0, 1), watcher}, "", "waiting for 1 more machine (1 of 2 workers have joined)"},
		{"two of a place", 1, []collective.Member{worker("m", 0, 1), twin}, "", "are both worker 0 of m: waiting until one is gone"},
		{"two sizes", 1, []collective.Member{worker("m", 0, 1), worker("m", 1, 2)}, "", "m0 says m has 1 worker, m1 says 2"},
		{"beyond the size", 1, []collective.Member{worker("m", 2, 2), worker("m", 0, 2)}, "", "m2 is worker 2 of m, which has 2"},
	} {
		t.Run(test.name, func(t *testing.T) {
			seen := map[peer]candidate{}
			for _, m := range test.seen {
				seen[peerOf(m)] = expects(m, test.nodes)
			}
			members, w := assemble(expects(worker("m", 0, 1), test.nodes), seen)
			var names string
			for _, m := range members {
				names += m.Name
			}
			require.Equal(t, test.want, names)
			require.Equal(t, test.want != "", w.Complete(), w)
			require.Contains(t, w.String(), test.line)
		})
	}
}

func TestAssembleNotesOtherExpectations(t *testing.T) {
	self := collective.Member{Name: "a", Nonce: 1, Node: "a", LocalSize: 1}
	other := collective.Member{Name: "b", Nonce: 1, Node: "b", LocalSize: 1}
	members, w := assemble(expects(self, 2), map[peer]candidate{peerOf(self): expects(self, 2), peerOf(other): expects(other, 3)})
	require.Nil(t, members)
	require.Equal(t, []string{"--nodes is 2 here and 3 on b"}, w.Differ)
	require.Contains(t, w.String(), w.Differ[0])
}
