package membership

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/ringtrain/ringtrain/collective"
)

// A peer is the identity of a process: its name and the nonce of this life.
type peer struct {
	Name  string
	Nonce uint64
}

func peerOf(m collective.Member) peer { return peer{m.Name, m.Nonce} }

// gossipName is unique to one life of a process. A restart under the same name
// is therefore another node to memberlist, which otherwise reports no event.
func (p peer) gossipName() string { return fmt.Sprintf("%s-%016x", p.Name, p.Nonce) }

func (p peer) compare(q peer) int {
	return cmp.Or(cmp.Compare(p.Name, q.Name), cmp.Compare(p.Nonce, q.Nonce))
}

// A ballot is one attempt to decide an epoch. The zero ballot is below all.
type ballot struct {
	Round uint64
	By    peer // the only one who may propose under this ballot
}

func (b ballot) compare(c ballot) int {
	return cmp.Or(cmp.Compare(b.Round, c.Round), b.By.compare(c.By))
}

func (b ballot) less(c ballot) bool { return b.compare(c) < 0 }

// rankOf is the index of p among members, or -1.
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
