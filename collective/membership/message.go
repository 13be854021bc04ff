package membership

import (
	"fmt"

	"github.com/ringtrain/ringtrain/collective"
)

type kind uint8

const (
	prepare kind = iota + 1 // asks for a promise of Ballot
	promise                 // gives it; Vote is what was accepted before, or nil
	refuse                  // Ballot is the higher one that was promised
	propose                 // asks to accept Vote
	accept                  // does so
	commit                  // Vote.View is decided; Ballot says as of when
	query                   // asks for the View that the receiver holds
	watch                   // the same, from a watcher
	closed                  // the receiver of this is not in the View of Job
	kinds
)

func (k kind) String() string {
	names := [...]string{"", "prepare", "promise", "refuse", "propose", "accept", "commit", "query", "watch", "closed"}
	if int(k) >= len(names) {
		return fmt.Sprintf("kind(%d)", uint8(k))
	}
	return names[k]
}

// A message of the view protocol. Job and Epoch name the instance that is voted
// on: Epoch is the epoch to be decided and Job that of the View before it, 0 if
// there is none. For query and watch, Epoch is the one already held.
type message struct {
	Kind       kind
	From, To   peer
	Job, Epoch uint64
	Ballot     ballot
	Vote       *vote // shared between messages: never modified
}

// A vote is a View under a ballot. Its View has no Self.
type vote struct {
	Ballot ballot
	View   collective.View
	// Absent marks members whose acceptance was not asked because gossip had
	// given them up. Only for a first View that is finished in the place of a
	// dead proposer; nil if nobody is absent.
	Absent []bool
}

// voters are those who decide on a first View.
func (v *vote) voters() []peer {
	ps := make([]peer, 0, len(v.View.Members))
	for i, m := range v.View.Members {
		if v.Absent == nil || !v.Absent[i] {
			ps = append(ps, peerOf(m))
		}
	}
	return ps
}
