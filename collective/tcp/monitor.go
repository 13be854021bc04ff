package tcp

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/ringtrain/ringtrain/collective"
	"github.com/ringtrain/ringtrain/collective/publish"
)

const (
	heartbeatLeast = 250 * time.Millisecond // between heartbeats to a peer
	heartbeatRanks = 32                     // more ranks send their heartbeats less often
	looks          = 10                     // checks per heartbeat whether a call takes long
	silenceLimit   = 5 * time.Second        // a peer that sends nothing for this long is lost
	// When a connection ends, an abort that names the real culprit may still be on its
	// way. Only after this time is the peer blamed.
	abortGrace = 50 * time.Millisecond
)

// A monitor watches the peers of a View over the control Links: which of them are
// alive, how many calls each has begun, and what broke the View. Messages do not pass
// through it.
type monitor struct {
	view  collective.View
	peers []peer // by rank; this rank's own entry has no Links

	started   time.Time
	silence   time.Duration // a peer that sends nothing for this long is lost
	heartbeat time.Duration // see heartbeatOf
	connected atomic.Bool   // all peers have connected

	called publish.Word  // the number of the last call that this rank has begun; heartbeats carry it
	seen   atomic.Uint64 // called, as sendHeartbeats last saw it
	seenAt atomic.Int64  // when that first saw it, in nanoseconds since started

	failed chan struct{} // closed when cause is set
	mu     sync.Mutex
	cause  atomic.Pointer[error] // what broke the transport; set once, with mu held
	grace  *time.Timer           // runs while a lost connection is not yet blamed on its peer

	reporting sync.Mutex // held while sending reports of a failure, so that Close does not cut them off
	done      sync.WaitGroup
}

// A peer is one other rank.
type peer struct {
	control *Link
	bulk    []*Link   // by stream
	sockets []*socket // of the streams, where messages are moved without goroutines
	// The workers of bulk[1:], where there are no sockets.
	senders, receivers []*streamWorker

	first struct{ out, in [][]byte } // the stripes that travel over bulk[0]

	write  sync.Mutex    // held while a frame is written to control; guards all Links while connecting
	called atomic.Uint64 // the number of the last call that it has begun
	heard  atomic.Int64  // when a frame last arrived, in nanoseconds of time.Since(monitor.started)
	left   atomic.Bool   // it has said goodbye
}

// heartbeatOf returns the time between heartbeats to a peer. Each rank sends one to every
// other, which would keep many ranks on few cores busy. At least four arrive before a peer
// counts as silent.
func heartbeatOf(ranks int, silence time.Duration) time.Duration {
	return max(heartbeatLeast, min(silence/5, heartbeatLeast*time.Duration(ranks)/heartbeatRanks))
}

// attach gives a peer one of its Links. Heartbeats begin as soon as there is a
// control Link, however long other peers take to connect. Until all Links are
// attached, no method other than Abort is called.
func (m *monitor) attach(rank int, l *Link) {
	p := &m.peers[rank]
	p.write.Lock()
	if l.purpose.Channel == Bulk {
		p.bulk[l.purpose.Stream] = l
		p.write.Unlock()
		return
	}
	p.control = l
	p.write.Unlock()
	m.done.Go(func() { m.readControl(rank, l) })
	var cause *collective.RankError
	if errors.As(m.broken(), &cause) { // it was reported before this Link existed
		_ = m.sendFrame(rank, frameAbort, collective.PutAbort(cause, m.view.Self))
	}
}

// Behind returns the rank that has begun the fewest calls, if fewer than seq. It knows of none
// until the ranks that are in that call have had the time to tell.
func (m *monitor) Behind(seq uint64) (rank int, ok bool) {
	if m.seen.Load() < seq || time.Since(m.started)-time.Duration(m.seenAt.Load()) < 3*m.heartbeat/looks {
		return 0, false
	}
	least := seq
	for r := range m.peers {
		if r != m.view.Self && m.peers[r].called.Load() < least {
			least, rank, ok = m.peers[r].called.Load(), r, true
		}
	}
	return rank, ok
}

// Failed is closed when the transport breaks.
func (m *monitor) Failed() <-chan struct{} { return m.failed }

// Err returns what broke the transport, or nil.
func (m *monitor) Err() error { return m.broken() }

// Left reports whether a rank has said goodbye.
func (m *monitor) Left(rank int) bool { return m.peers[rank].left.Load() }

// Begun records a call that this rank makes by other means than Send and Recv, so
// that its peers learn of it.
func (m *monitor) Begun(h *collective.Header) { m.begun(h) }

// Abort is part of collective.Transport.
func (m *monitor) Abort(cause *collective.RankError) {
	m.reporting.Lock()
	defer m.reporting.Unlock()
	if !m.fail(cause) {
		return
	}
	report := collective.PutAbort(cause, m.view.Self)
	for r := range m.peers {
		if r != m.view.Self && !m.peers[r].left.Load() {
			_ = m.sendFrame(r, frameAbort, report)
		}
	}
	m.interruptCalls()
}

// closeLinks closes all Links.
func (m *monitor) closeLinks() {
	for r := range m.peers {
		p := &m.peers[r]
		p.write.Lock()
		links := append([]*Link{p.control}, p.bulk...)
		p.write.Unlock()
		for _, l := range links {
			if l != nil {
				_ = l.Close()
			}
		}
	}
}

// begun records the number of a call of all ranks. Calls of sub-groups and between
// two ranks are numbered separately.
func (m *monitor) begun(h *collective.Header) {
	if h.OfAll() && m.called.Load() < h.Seq {
		m.called.Publish(h.Seq)
	}
}

func (m *monitor) broken() error {
	if cause := m.cause.Load(); cause != nil {
		return *cause
	}
	return nil
}

// fail sets what broke the transport. It returns false if something else broke it
// before.
func (m *monitor) fail(cause error) bool {
	if e, ok := cause.(*collective.RankError); ok && e.Node == "" { // reports carry only the rank
		named := *e
		named.Node, named.Epoch = m.view.Name(e.Rank), m.view.Epoch
		cause = &named
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.broken() != nil {
		return false
	}
	m.cause.Store(&cause)
	close(m.failed)
	return true
}

// interruptCalls ends the calls in progress on bulk Links.
func (m *monitor) interruptCalls() {
	for r := range m.peers {
		p := &m.peers[r]
		p.write.Lock()
		for _, l := range p.bulk {
			if l != nil {
				l.interrupt()
			}
		}
		for _, s := range p.sockets {
			s.shutdown()
		}
		p.write.Unlock()
	}
}

// lost records that a connection to a rank ended without a goodbye. The rank is
// blamed unless another cause arrives within abortGrace.
func (m *monitor) lost(rank int, phase string, err error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.broken() != nil || m.grace != nil {
		return
	}
	cause := &collective.RankError{Rank: rank, Phase: phase, Err: err}
	blame := func() {
		if m.peers[rank].left.Load() {
			cause.Err = collective.ErrLeft // its goodbye arrived on the other Link
		}
		m.Abort(cause)
	}
	// The time is split in two. If this process itself was stopped, the first half
	// expires as soon as it continues, before anything that arrived in between is read.
	m.grace = time.AfterFunc(abortGrace/2, func() {
		m.mu.Lock()
		defer m.mu.Unlock()
		if m.broken() == nil {
			m.grace = time.AfterFunc(abortGrace/2, blame)
		}
	})
}

// linkFailed handles the failure of a bulk Link. It returns what broke the transport,
// once that is known.
func (m *monitor) linkFailed(ctx context.Context, rank int, phase string, err error) error {
	var differ *collective.MismatchError
	switch {
	case errors.As(err, &differ):
		m.Abort(&collective.RankError{Rank: rank, Phase: "mismatch", Err: err})
		return err
	case ctx.Err() != nil:
		m.Abort(&collective.RankError{Rank: m.view.Self, Phase: "cancelled", Err: context.Cause(ctx)})
	case m.broken() != nil:
	case m.peers[rank].left.Load():
		m.Abort(&collective.RankError{Rank: rank, Phase: phase, Err: collective.ErrLeft})
	default:
		m.lost(rank, phase, fmt.Errorf("%w (%v)", collective.ErrLost, err))
	}
	<-m.failed
	return m.broken()
}
