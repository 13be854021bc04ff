package membership

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/ringtrain/ringtrain/collective"
)

// A peer identifies one start of a process: its name and nonce.
type peer struct {
	Name  string
	Nonce uint64
}

func peerOf(m collective.Member) peer { return peer{m.Name, m.Nonce} }

// gossipName is unique to one start of a process. So to memberlist, a restart under
// the same name is another node; otherwise it would report no event.
func (p peer) gossipName() string { return fmt.Sprintf("%s-%016x", p.Name, p.Nonce) }

func (p peer) compare(q peer) int {
	return cmp.Or(cmp.Compare(p.Name, q.Name), cmp.Compare(p.Nonce, q.Nonce))
}

// A ballot is one attempt to decide an epoch. The zero ballot is the lowest.
type ballot struct {
	Round uint64
	By    peer // the only proposer under this ballot
}

func (b ballot) compare(c ballot) int {
	return cmp.Or(cmp.Compare(b.Round, c.Round), b.By.compare(c.By))
}

func (b ballot) less(c ballot) bool { return b.compare(c) < 0 }

// rankOf returns the index of p among members, or -1.
func rankOf(members []collective.Member, p peer) int {
	return slices.IndexFunc(members, func(m collective.Member) bool { return peerOf(m) == p })
}

func peersOf(members []collective.Member) []peer {
	ps := make([]peer, len(members))
	for i, m := range members {
		ps[i] = peerOf(m)
	}
	return ps
}
