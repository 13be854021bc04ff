package membership

import (
	"time"

	"github.com/hashicorp/memberlist"
)

// delegate is what memberlist calls, partly under its own lock: everything here
// only copies and enqueues.
type delegate struct {
	agent *Agent
	meta  []byte
}

var (
	_ memberlist.Delegate         = (*delegate)(nil)
	_ memberlist.EventDelegate    = (*delegate)(nil)
	_ memberlist.AliveDelegate    = (*delegate)(nil)
	_ memberlist.ConflictDelegate = (*delegate)(nil)
)

// NodeMeta is what other processes learn about this one.
func (d *delegate) NodeMeta(int) []byte { return d.meta }

// NotifyAlive keeps out whoever is not one of us: with another version, a
// garbled meta, or no name.
func (d *delegate) NotifyAlive(n *memberlist.Node) error {
	_, err := identify(n.Name, n.Meta)
	return err
}

// NotifyJoin reports a member that was not there before.
func (d *delegate) NotifyJoin(n *memberlist.Node) { d.sighted(n) }

// NotifyUpdate reports a member whose meta has changed.
func (d *delegate) NotifyUpdate(n *memberlist.Node) { d.sighted(n) }

func (d *delegate) sighted(n *memberlist.Node) {
	c, err := identify(n.Name, n.Meta)
	if err != nil {
		return
	}
	at := memberlist.Node{Name: n.Name, Addr: append([]byte(nil), n.Addr...), Port: n.Port}
	d.agent.in.put(func(now time.Time) { d.agent.up(now, c, at) })
}

// NotifyLeave reports a member that left or is taken for dead: memberlist does
// not tell which.
func (d *delegate) NotifyLeave(n *memberlist.Node) {
	c, err := identify(n.Name, n.Meta)
	if err != nil {
		return
	}
	d.agent.in.put(func(now time.Time) { d.agent.down(now, c.Member) })
}

// NotifyConflict reports two processes with one name and nonce. As nonces are
// drawn that is a copied process, or a caller who chose them.
func (d *delegate) NotifyConflict(existing, other *memberlist.Node) {
	name, here, there := existing.Name, existing.Address(), other.Address()
	d.agent.in.put(func(time.Time) {
		d.agent.cfg.Log.Error("two processes have one name and nonce", "name", name, "at", here, "and", there)
	})
}

// NotifyMsg takes a message of the view protocol, or a letter.
func (d *delegate) NotifyMsg(b []byte) {
	if isLetter(b) {
		l, err := decodeLetter(b)
		switch {
		case err != nil:
			d.agent.cfg.Log.Debug("letter refused", "error", err)
		case l.to != d.agent.machine.id: // an earlier life of this process
		case l.mark == callMark:
			d.agent.in.message(func(time.Time) { d.agent.called(l) })
		case l.mark == hereMark:
			d.agent.in.message(func(now time.Time) { d.agent.present(now, l) })
		case l.mark == answerMark || d.agent.cfg.Answer != nil:
			d.agent.letters.take(l)
		}
		return
	}
	msg, err := decodeMessage(b)
	if err != nil {
		d.agent.cfg.Log.Debug("message refused", "error", err)
		return
	}
	d.agent.in.message(func(now time.Time) { d.agent.machine.Receive(now, msg) })
}

// GetBroadcasts has nothing to add to gossip.
func (d *delegate) GetBroadcasts(int, int) [][]byte { return nil }

// LocalState has nothing to add to the exchange of whole states.
func (d *delegate) LocalState(bool) []byte { return nil }

// MergeRemoteState ignores what others add.
func (d *delegate) MergeRemoteState([]byte, bool) {}
