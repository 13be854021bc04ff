package membership

import (
	"slices"

	"github.com/ringtrain/ringtrain/collective"
)

// A census has the processes that gossip believes alive. It may be wrong about
// each of them, except about this one.
type census struct {
	self candidate
	id   peer
	seen map[peer]candidate // including self

	// What assemble found, until seen changes. Of many processes, sorting them for each
	// message and tick keeps a machine with few cores so busy that gossip gives up live ones.
	members   []collective.Member
	lacks     Waiting
	assembled bool
}

func newCensus(self candidate) *census {
	id := peerOf(self.Member)
	return &census{self: self, id: id, seen: map[peer]candidate{id: self}}
}

// add records c and reports whether it is new.
func (s *census) add(c candidate) bool {
	p := peerOf(c.Member)
	known := s.alive(p)
	s.seen[p] = c
	s.assembled = false
	return !known
}

func (s *census) remove(p peer) {
	delete(s.seen, p)
	s.assembled = false
}

func (s *census) alive(p peer) bool {
	_, up := s.seen[p]
	return up
}

// among returns those of ps that are alive.
func (s *census) among(ps []peer) []peer {
	return slices.DeleteFunc(slices.Clone(ps), func(p peer) bool { return !s.alive(p) })
}

// watches reports whether this process is a Watcher, which has no vote.
func (s *census) watches() bool { return s.self.Role == collective.Watcher }

// alone reports whether there is no other machine.
func (s *census) alone() bool {
	for _, c := range s.seen {
		if c.Role != collective.Watcher && c.Node != s.self.Node {
			return false
		}
	}
	return true
}

// assemble returns the members of the first View, or nil, and what it still lacks. The
// slices are shared: callers may append to them, but do not change their elements.
func (s *census) assemble() ([]collective.Member, Waiting) {
	if !s.assembled {
		s.members, s.lacks = assemble(s.self, s.seen)
		s.members, s.lacks.Notes = slices.Clip(s.members), slices.Clip(s.lacks.Notes)
		s.assembled = true
	}
	return s.members, s.lacks
}

// concerned returns the processes that wait for the same View as this one, in a
// fixed order.
func (s *census) concerned() []peer {
	var ps []peer
	for p, c := range s.seen {
		if s.concerns(c) {
			ps = append(ps, p)
		}
	}
	slices.SortFunc(ps, peer.compare)
	return ps
}

// concerns reports whether c waits for the same View as this process.
func (s *census) concerns(c candidate) bool {
	switch {
	case c.Role == collective.Watcher:
		return false
	case s.watches():
		return true
	case c.Format != s.self.Format:
		return false
	case s.self.Nodes <= 1:
		return c.Node == s.self.Node && c.Nodes <= 1
	}
	return c.Nodes == s.self.Nodes
}
