package membership

import (
	"fmt"

	"github.com/ringtrain/ringtrain/collective"
)

type kind uint8

const (
	prepare kind = iota + 1 // asks for a promise of Ballot
	promise                 // promises; Vote is what was accepted before, or nil
	refuse                  // Ballot is the higher one that was promised
	propose                 // asks to accept Vote
	accept                  // accepts
	commit                  // Vote.View is decided under Ballot
	query                   // asks for the receiver's View
	watch                   // the same, from a Watcher
	closed                  // the receiver is not in the View of Job
	kinds
)

func (k kind) String() string {
	names := [...]string{"", "prepare", "promise", "refuse", "propose", "accept", "commit", "query", "watch", "closed"}
	if int(k) >= len(names) {
		return fmt.Sprintf("kind(%d)", uint8(k))
	}
	return names[k]
}

// A message of the view protocol. Job and Epoch name the instance of the vote:
// Epoch is the epoch to decide, Job that of the previous View, 0 if there is none.
// In query and watch, Epoch is the one that the sender has.
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
	// Absent marks members that were not asked because gossip had given them up. Only
	// a first View that is finished for a dead proposer has it; nil if none is
	// absent.
	Absent []bool
}

// voters returns the processes that decide on a first View.
func (v *vote) voters() []peer {
	ps := make([]peer, 0, len(v.View.Members))
	for i, m := range v.View.Members {
		if v.Absent == nil || !v.Absent[i] {
			ps = append(ps, peerOf(m))
		}
	}
	return ps
}
