package tcp

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/ringtrain/ringtrain/collective"
)

// Frames of the control Link. Their kinds lie beyond those of operations.
const (
	frameBeat  collective.Kind = 0xf0 + iota // Seq: the highest call the sender has begun
	frameAbort                               // payload: collective.PutAbort
	frameBye                                 // the sender leaves; the end of its connections is no failure
)

// tell sends a frame to a rank on its control Link.
func (c *controlPlane) tell(rank int, kind collective.Kind, payload []byte) error {
	p := &c.peers[rank]
	p.write.Lock()
	defer p.write.Unlock()
	if p.control == nil {
		return nil // still connecting
	}
	// A peer whose buffer is full, of a thousand beats, has not read for minutes
	// and is lost already. The time is long because a Link is useless once a write
	// was cut short, which must not happen to who only waited for the processor.
	_ = p.control.raw.SetWriteDeadline(time.Now().Add(c.silence / 2))
	h := collective.Header{Job: c.view.Job, Epoch: c.view.Epoch, Seq: c.called.Load(), Call: collective.Call{Kind: kind}, Len: uint32(len(payload))}
	return p.control.Write(context.Background(), &h, [][]byte{payload})
}

// beat tells every peer, again and again, that this rank lives and how far it
// has come.
func (c *controlPlane) beat() {
	tick := time.NewTicker(beatEvery)
	defer tick.Stop()
	for {
		select {
		case <-tick.C:
			for r := range c.peers {
				if r != c.view.Self && !c.peers[r].left.Load() {
					_ = c.tell(r, frameBeat, nil) // a broken Link is found by its listener
				}
			}
		case <-c.failed:
			return
		}
	}
}

// listen reads a peer's control Link until it ends.
func (c *controlPlane) listen(rank int, control *Link) {
	p := &c.peers[rank]
	var news [collective.MaxAbort]byte
	for {
		var kind collective.Kind
		var payload []byte
		err := c.hear(control, func(h *collective.Header) ([][]byte, error) {
			if h.Job != c.view.Job || h.Epoch != c.view.Epoch || h.Len > collective.MaxAbort || (h.Len > 0 && h.Call.Kind != frameAbort) {
				return nil, fmt.Errorf("it sent a control frame of kind %#x and %d bytes that makes no sense here", uint8(h.Call.Kind), h.Len)
			}
			kind, payload = h.Call.Kind, news[:h.Len]
			p.called.Store(max(p.called.Load(), h.Seq))
			return [][]byte{payload}, nil
		})
		switch {
		case errors.Is(err, collective.ErrSilent) && !c.whole.Load():
			// It has let the Link in, but may not connect yet, or has no time to beat. How
			// long that may take is for the context of Connect.
		case err != nil:
			c.ended(rank, err)
			return
		case kind == frameBye:
			p.left.Store(true)
		case kind == frameAbort:
			c.heard(rank, payload)
		}
	}
}

// hear reads one frame. A peer is silent only when nothing came in two spans
// of half the time each: after this very process was stopped and continued,
// the first span is over before anything was read.
func (c *controlPlane) hear(control *Link, into func(h *collective.Header) ([][]byte, error)) error {
	for range 2 {
		_ = control.raw.SetReadDeadline(time.Now().Add(c.silence / 2))
		err := control.Next(context.Background(), into)
		if !errors.Is(err, os.ErrDeadlineExceeded) {
			return err
		}
	}
	return collective.ErrSilent
}

// heard takes another rank's word for who broke the View.
func (c *controlPlane) heard(rank int, payload []byte) {
	cause, err := collective.GetAbort(payload, len(c.peers))
	if err != nil {
		cause = &collective.RankError{Rank: rank, Phase: "heartbeat", Err: err}
	}
	// Passing it on is not needed, who told it told everybody; but the rank
	// that told may have died in the middle.
	c.Abort(cause)
}

// ended judges the end of a control Link.
func (c *controlPlane) ended(rank int, err error) {
	switch {
	case c.broken() != nil:
	case c.peers[rank].left.Load():
		// The rank may have left in order. Who waits for it finds its bulk Link
		// ended as well.
	case errors.Is(err, collective.ErrSilent):
		c.Abort(&collective.RankError{Rank: rank, Phase: "heartbeat", Err: err})
	default:
		c.doubt(rank, "heartbeat", fmt.Errorf("%w (%v)", collective.ErrLost, err))
	}
}
