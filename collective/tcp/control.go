package tcp

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/ringtrain/ringtrain/collective"
)

// The kinds of frames on a control Link. Their values lie beyond those of operations.
const (
	frameHeartbeat collective.Kind = 0xf0 + iota // Seq is the number of the last call that the sender has begun
	frameAbort                                   // the payload is a collective.PutAbort
	frameGoodbye                                 // the sender leaves, so the end of its connections is no failure
)

// sendFrame sends a control frame to a rank.
func (m *monitor) sendFrame(rank int, kind collective.Kind, payload []byte) error {
	p := &m.peers[rank]
	p.write.Lock()
	defer p.write.Unlock()
	if p.control == nil {
		return nil // still connecting
	}
	// A write that is cut short leaves the Link useless, so the deadline is generous: it
	// must not hit a process that is only short of CPU time. The socket holds about a
	// thousand heartbeats, so a peer whose socket is full has read nothing for minutes and
	// is lost anyway.
	_ = p.control.raw.SetWriteDeadline(time.Now().Add(m.silence / 2))
	h := collective.Header{Job: m.view.Job, Epoch: m.view.Epoch, Seq: m.called.Load(), Call: collective.Call{Kind: kind}, Len: uint32(len(payload))}
	return p.control.Write(context.Background(), &h, [][]byte{payload})
}

// sendHeartbeats tells every peer, at intervals, that this rank is alive and how many
// calls it has begun. It sends an early heartbeat once a call takes long, so that the other
// ranks know which rank is behind when a deadline passes. It ends when the transport breaks.
func (m *monitor) sendHeartbeats() {
	look := m.heartbeat / looks
	tick := time.NewTicker(look)
	defer tick.Stop()
	var last time.Duration // when the last heartbeats were sent, and how many calls had begun then
	var told uint64
	for {
		select {
		case <-tick.C:
			now, called := time.Since(m.started), m.called.Load()
			long := called == m.seen.Load()
			if !long {
				m.seenAt.Store(int64(now))
				m.seen.Store(called)
			}
			if now-last < m.heartbeat-look/2 && (!long || called == told) {
				continue
			}
			last, told = now, called
			for r := range m.peers {
				if r != m.view.Self && !m.peers[r].left.Load() {
					_ = m.sendFrame(r, frameHeartbeat, nil) // readControl notices a broken Link
				}
			}
		case <-m.failed:
			return
		}
	}
}

// readControl reads a peer's control Link until it ends.
func (m *monitor) readControl(rank int, control *Link) {
	p := &m.peers[rank]
	var report [collective.MaxAbort]byte
	for {
		var kind collective.Kind
		var payload []byte
		err := m.nextFrame(control, func(h *collective.Header) ([][]byte, error) {
			if h.Job != m.view.Job || h.Epoch != m.view.Epoch || h.Len > collective.MaxAbort || (h.Len > 0 && h.Call.Kind != frameAbort) {
				return nil, fmt.Errorf("it sent an invalid control frame of kind %#x and %d bytes", uint8(h.Call.Kind), h.Len)
			}
			kind, payload = h.Call.Kind, report[:h.Len]
			p.heard.Store(int64(time.Since(m.started)))
			p.called.Store(max(p.called.Load(), h.Seq))
			return [][]byte{payload}, nil
		})
		switch {
		case errors.Is(err, collective.ErrSilent) && !m.connected.Load():
			// The peer accepted the Link, but may not have called Connect yet, or has no CPU
			// time for heartbeats. The context of Connect limits how long that may take.
		case err != nil:
			m.controlEnded(rank, err)
			return
		case kind == frameGoodbye:
			p.left.Store(true)
		case kind == frameAbort:
			m.reported(rank, payload)
		}
	}
}

// nextFrame reads one frame. A peer is silent only if nothing arrives in two waits of
// half the time each. If this process itself was stopped, the first wait expires as
// soon as it continues, before anything is read. Once there is a header, its payload has
// another wait of its own, because a frame cannot be read in two attempts.
func (m *monitor) nextFrame(control *Link, into func(h *collective.Header) ([][]byte, error)) error {
	header := false
	for tries := 0; tries < 2 && !header; tries++ {
		_ = control.raw.SetReadDeadline(time.Now().Add(m.silence / 2))
		err := control.Next(context.Background(), func(h *collective.Header) ([][]byte, error) {
			header = true
			_ = control.raw.SetReadDeadline(time.Now().Add(m.silence))
			return into(h)
		})
		if !errors.Is(err, os.ErrDeadlineExceeded) {
			return err
		}
	}
	return collective.ErrSilent
}

// reported handles another rank's report of what broke the View.
func (m *monitor) reported(rank int, payload []byte) {
	cause, err := collective.GetAbort(payload, len(m.peers))
	if err != nil {
		cause = &collective.RankError{Rank: rank, Phase: "heartbeat", Err: err}
	}
	var report *collective.ReportedError
	if errors.Is(cause.Err, collective.ErrSilent) && m.hears(cause.Rank) && errors.As(cause.Err, &report) {
		report.Err = fmt.Errorf("%w; rank %d still hears it, so only its connection to rank %d may be broken", report.Err, m.view.Self, report.By)
	}
	// The sender reports to every rank itself. Abort reports it again, because the sender
	// may have died halfway.
	m.Abort(cause)
}

// controlEnded handles the end of a control Link.
func (m *monitor) controlEnded(rank int, err error) {
	switch {
	case m.broken() != nil:
	case m.peers[rank].left.Load():
		// The rank may have left as it should. Ranks that still wait for it notice that its
		// bulk Link has ended.
	case errors.Is(err, collective.ErrSilent):
		if m.isolated() {
			err = fmt.Errorf("%w; no other machine is heard either, so the network of this one may be down", err)
		}
		m.Abort(&collective.RankError{Rank: rank, Phase: "heartbeat", Err: err})
	default:
		m.lost(rank, "heartbeat", fmt.Errorf("%w (%v)", collective.ErrLost, err))
	}
}

// hears reports whether another rank has sent something lately.
func (m *monitor) hears(rank int) bool {
	at := time.Duration(m.peers[rank].heard.Load())
	return at > 0 && time.Since(m.started)-at < m.silence/2
}

// isolated reports whether there are several other machines, and none has sent anything lately.
func (m *monitor) isolated() bool {
	self, others := m.view.Members[m.view.Self], map[string]bool{}
	for r, o := range m.view.Members {
		switch {
		case o.Node == self.Node || o.Host == self.Host && o.Host != 0:
		case m.peers[r].left.Load():
		case m.hears(r):
			return false
		default:
			others[o.Node] = true
		}
	}
	return len(others) > 1
}
