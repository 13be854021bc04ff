package membership

import (
	"slices"
	"time"

	"github.com/ringtrain/ringtrain/collective"
)

// ask asks a few others from time to time for the View that we lack: its commit
// may have been lost, or the job may have started before we came. A Watcher never
// stops, because only the answers tell it of later Views.
func (m *machine) ask(now time.Time) {
	if m.content() || now.Before(m.pace.askAt) {
		return
	}
	m.pace.askAt = now.Add(m.pace.askGap)
	m.pace.askGap = min(2*m.pace.askGap, askMost)
	if m.held != nil && m.self.Role == collective.Watcher {
		m.pace.askGap = askFirst
	}
	msg := message{Kind: query}
	if m.self.Role == collective.Watcher {
		msg.Kind = watch
	}
	if m.held != nil {
		msg.Job, msg.Epoch = m.held.view.Job, m.held.view.Epoch
	}
	whom := m.confidants()
	for range min(askAtOnce, len(whom)) {
		m.pace.cursor++
		msg.To = whom[m.pace.cursor%len(whom)]
		m.send(msg)
	}
}

// confidants returns the processes that may know the View that we lack.
func (m *machine) confidants() []peer {
	var ps []peer
	switch {
	case m.held != nil:
		ps = peersOf(m.held.view.Members)
	default:
		for p, c := range m.seen {
			if m.concerns(c) {
				ps = append(ps, p)
			}
		}
		slices.SortFunc(ps, peer.compare)
	}
	return slices.DeleteFunc(ps, func(p peer) bool { return p == m.id })
}

// concerns reports whether c waits for the same View as this process.
func (m *machine) concerns(c candidate) bool {
	switch {
	case c.Role == collective.Watcher:
		return false
	case m.self.Role == collective.Watcher:
		return true
	case c.Format != m.self.Format:
		return false
	case m.self.Nodes <= 1:
		return c.Node == m.self.Node && c.Nodes <= 1
	}
	return c.Nodes == m.self.Nodes
}

// waiting returns what the first View still lacks.
func (m *machine) waiting() Waiting {
	members, w := assemble(m.self, m.seen)
	switch {
	case m.run != nil:
		for _, p := range m.run.unanswered() {
			if p != m.id {
				w.Unanswered = append(w.Unanswered, p.Name)
			}
		}
	case len(members) > 0 && peerOf(members[0]) != m.id:
		w.Unanswered = []string{members[0].Name}
	}
	return w
}
