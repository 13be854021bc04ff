package tcp

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"syscall"
	"time"

	"github.com/ringtrain/ringtrain/collective"
)

// minWaiting is the minimum number of Links that a Connector keeps for Views that this
// process does not know yet.
const minWaiting = 4096

// A Connector connects this process to the other members of its Views. It dials some
// Links, and as the Handler of a Listener it gets those that others dial. A peer may know
// of a View, and dial, before this process does. Its Links wait in the Connector until
// Connect is called.
type Connector struct {
	// Log, if not nil, gets the address at which each peer was reached. Set it before the
	// first Connect.
	Log *slog.Logger
	// Streams is the number of connections over which large messages between two ranks are
	// spread, at most MaxStreams; 0 means AutoStreams. It must be the same on all ranks.
	// Set it before the first Connect.
	Streams int

	id       Identity
	timeouts timeouts

	mu        sync.Mutex
	view      collective.View   // of the latest Connect; Links of earlier ones are refused
	digest    uint64            // of view
	streams   int               // of view
	mismatch  map[Purpose]error // Links of view that were refused because their dialler uses another number of streams
	waiting   map[Purpose]*Link
	changed   chan struct{} // closed and replaced when waiting or mismatch changes
	closed    bool
	acceptErr error // why the Listener could not accept; nil once a Link arrives
}

// timeouts are those of a Connector and its Transports. They are shorter in tests.
type timeouts struct {
	answer  time.Duration // for the first answer to a hello
	silence time.Duration // a peer that sends nothing for this long is lost
}

var _ Handler = (*Connector)(nil)

// NewConnector returns a Connector. Pass it to Listen as the handler.
func NewConnector(id Identity) *Connector {
	return &Connector{id: id, timeouts: timeouts{answerTimeout, silenceLimit}, waiting: map[Purpose]*Link{}, changed: make(chan struct{})}
}

// Allow refuses Links of other jobs, of earlier Views, and of processes that are not in
// the View. So there are never more Links of the current View than it needs.
func (c *Connector) Allow(peer Identity, p Purpose) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	known := c.view.Job != 0
	switch {
	case c.closed:
		return fmt.Errorf("%s is leaving", c.id.Name)
	case known && p.Job != c.view.Job:
		return fmt.Errorf("%s is in job %016x, not %016x", c.id.Name, c.view.Job, p.Job)
	case p.Epoch < c.view.Epoch:
		return fmt.Errorf("epoch %d is over, %s is in epoch %d", p.Epoch, c.id.Name, c.view.Epoch)
	case !known || p.Epoch > c.view.Epoch:
		if len(c.waiting) >= max(minWaiting, 2*c.view.Size()*(MaxStreams+1)) {
			return errBusy // until this process knows that View, too
		}
		return nil
	}
	if err := c.checkCurrent(peer, p); err != nil {
		return err
	}
	if int(p.Streams) != c.streams {
		err := c.streamsDiffer(peer.Name, p.Streams, c.streams)
		c.mismatch[p.key()] = err // this ends Connect
		c.wake()
		return err
	}
	if int(p.Stream) >= c.streams {
		return fmt.Errorf("there is no stream %d: %s uses %d streams", p.Stream, c.id.Name, c.streams)
	}
	return nil
}

// checkCurrent returns why a Link of the current epoch is not one that this process
// expects, or nil.
func (c *Connector) checkCurrent(peer Identity, p Purpose) error {
	v, r := c.view, int(p.Rank)
	switch {
	case p.Digest != c.digest:
		return fmt.Errorf("%s has different members in epoch %d", c.id.Name, p.Epoch)
	case r >= v.Size() || v.Members[r].Name != peer.Name || v.Members[r].Nonce != peer.Nonce:
		return fmt.Errorf("%s is not rank %d of epoch %d", peer.Name, p.Rank, p.Epoch)
	case r == v.Self || p.Channel != Bulk && p.Channel != Control || (p.Channel == Bulk) != (r > v.Self):
		return fmt.Errorf("rank %d does not dial rank %d for channel %d", r, v.Self, p.Channel)
	case p.Channel == Control && p.Stream != 0:
		return fmt.Errorf("there is no stream %d: control links have no streams", p.Stream)
	}
	return nil
}

func (c *Connector) streamsDiffer(name string, theirs uint8, mine int) error {
	return fmt.Errorf("%s uses %d streams, %s uses %d: give all ranks the same --streams", name, theirs, c.id.Name, mine)
}

// Accept keeps a Link until Connect needs it. A dialler dials again only after it has
// given up the earlier Link, so the later one replaces it.
func (c *Connector) Accept(l *Link) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.acceptErr = nil
	key := l.purpose.key()
	if old := c.waiting[key]; old != nil {
		_ = old.Close()
	}
	if c.closed || l.purpose.Epoch < c.view.Epoch {
		_ = l.Close()
		return
	}
	c.waiting[key] = l
	c.wake()
}

// AcceptFailed is part of Handler.
func (c *Connector) AcceptFailed(err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if outOfDescriptors(err) {
		c.acceptErr = err
	}
}

// outOfDescriptors reports whether an error says that file descriptors have run out. No
// other process is to blame for that.
func outOfDescriptors(err error) bool {
	return errors.Is(err, syscall.EMFILE) || errors.Is(err, syscall.ENFILE)
}

// key is the key of a Link in waiting. The dialler's number of streams is not part of it,
// because the process that waits must find the Link even if the numbers differ.
func (p Purpose) key() Purpose {
	p.Streams = 0
	return p
}

// wake makes all goroutines in await look again. The caller holds mu.
func (c *Connector) wake() {
	close(c.changed)
	c.changed = make(chan struct{})
}

// Close refuses further Links and closes those that wait.
func (c *Connector) Close() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.closed = true
	c.wake()
	for p, l := range c.waiting {
		_ = l.Close()
		delete(c.waiting, p)
	}
}

// setView makes v the current View, and closes Links that are of earlier ones or do not
// belong to it.
func (c *Connector) setView(v collective.View, streams int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if v.Epoch >= c.view.Epoch || v.Job != c.view.Job {
		c.view, c.digest, c.streams, c.mismatch = v, v.Digest(), streams, map[Purpose]error{}
	}
	for p, l := range c.waiting {
		if p.Job != v.Job || p.Epoch < v.Epoch || p.Epoch == v.Epoch && c.checkCurrent(l.peer, l.purpose) != nil {
			_ = l.Close()
			delete(c.waiting, p)
		}
	}
}

// await waits for a Link that a peer dials.
func (c *Connector) await(ctx context.Context, p Purpose) (*Link, error) {
	for {
		c.mu.Lock()
		l, mismatch, changed, closed := c.waiting[p.key()], c.mismatch[p.key()], c.changed, c.closed
		delete(c.waiting, p.key())
		c.mu.Unlock()
		switch {
		case l != nil:
			return l, nil
		case mismatch != nil:
			return nil, fmt.Errorf("%w: %w", ErrRefused, mismatch)
		case closed:
			return nil, collective.ErrClosed
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return nil, c.missing(ctx)
		}
	}
}

// missing returns why a Link has not arrived although ctx has ended.
func (c *Connector) missing(ctx context.Context) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	switch {
	case !errors.Is(ctx.Err(), context.DeadlineExceeded): // it was cancelled
		return context.Cause(ctx)
	case c.acceptErr != nil:
		return c.acceptErr
	}
	return fmt.Errorf("%w: %w", collective.ErrNotConnected, context.Cause(ctx))
}
