package membership

import (
	"time"

	"github.com/hashicorp/memberlist"
)

// delegate has the callbacks of memberlist. Some are called under memberlist's own
// lock, so all of them only copy and enqueue.
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

// NodeMeta returns what gossip spreads about this process.
func (d *delegate) NodeMeta(int) []byte { return d.meta }

// NotifyAlive rejects nodes that are not ours: with a garbled meta, or a name that
// does not match it.
func (d *delegate) NotifyAlive(n *memberlist.Node) error {
	_, err := identify(n.Name, n.Meta)
	return err
}

// NotifyJoin reports a new member.
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

// NotifyLeave reports a member that left or seems dead. memberlist does not say
// which.
func (d *delegate) NotifyLeave(n *memberlist.Node) {
	c, err := identify(n.Name, n.Meta)
	if err != nil {
		return
	}
	d.agent.in.put(func(now time.Time) { d.agent.down(now, c.Member) })
}

// NotifyConflict reports two processes with one name and nonce. Nonces are random,
// so this is a copied process, or a caller that chose them.
func (d *delegate) NotifyConflict(existing, other *memberlist.Node) {
	name, here, there := existing.Name, existing.Address(), other.Address()
	d.agent.in.put(func(time.Time) {
		d.agent.cfg.Log.Error("two processes have the same name and nonce", "name", name, "at", here, "and", there)
	})
}

// NotifyMsg handles a message of the view protocol, or a letter.
func (d *delegate) NotifyMsg(b []byte) {
	if isLetter(b) {
		l, err := decodeLetter(b)
		switch {
		case err != nil:
			d.agent.cfg.Log.Debug("letter refused", "error", err)
		case l.to != d.agent.machine.id: // meant for an earlier start of this process
		case l.mark == callMark:
			d.agent.in.message(func(time.Time) { d.agent.called(l) })
		case l.mark == hereMark:
			d.agent.in.message(func(now time.Time) { d.agent.present(now, l) })
		case l.mark == answerMark || d.agent.cfg.Answer != nil:
			d.agent.letters.receive(l)
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

// GetBroadcasts returns nothing: we add nothing to gossip.
func (d *delegate) GetBroadcasts(int, int) [][]byte { return nil }

// LocalState returns nothing: we add nothing to exchanges of state.
func (d *delegate) LocalState(bool) []byte { return nil }

// MergeRemoteState does nothing: no process of ours adds anything.
func (d *delegate) MergeRemoteState([]byte, bool) {}
