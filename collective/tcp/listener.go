package tcp

import (
	"context"
	"errors"
	"fmt"
	"net"
	"sync"
	"syscall"
	"time"
)

// acceptRetry is how long a Listener that cannot accept waits before it tries again.
const acceptRetry = 50 * time.Millisecond

// limits bound what strangers can use of a Listener. They keep no member out, because a
// dialler whose connection is closed dials again.
type limits struct {
	slots    int           // handshakes in progress; further connections wait in the kernel's queue
	idle     time.Duration // if all slots are in use, a dialler that is silent for this long within a step loses its slot
	total    time.Duration // of a handshake
	accepted int           // diallers that were accepted and have not confirmed
}

var defaultLimits = limits{slots: 128, idle: time.Second, total: time.Minute, accepted: 4096}

// errBusy means that a connection is closed without an answer, so that the dialler tries
// again.
var errBusy = errors.New("too many connections are waiting")

// A Handler decides about Links that others dial. Its methods are called from several
// goroutines at once and must not block.
type Handler interface {
	// Allow returns why a Link is refused, or nil. The dialler gets the reason and does
	// not try again.
	Allow(peer Identity, p Purpose) error
	// Accept takes ownership of a Link that was allowed and that the dialler uses.
	Accept(l *Link)
	// AcceptFailed reports that the operating system could not accept a connection.
	AcceptFailed(err error)
}

// A Listener accepts Links until it is closed.
type Listener struct {
	ln      net.Listener
	id      Identity
	handler Handler
	limits  limits

	ctx      context.Context // ends with Close
	cancel   context.CancelFunc
	slots    chan struct{} // one element per slot in use
	accepted chan struct{} // one element per dialler that was accepted and has not confirmed
	done     sync.WaitGroup

	mu      sync.Mutex
	pending map[*incoming]bool // those with a slot; false if the connection was closed to free it
}

// Listen accepts connections at addr (host:port, with port 0 for any) until Close.
// handler gets every Link whose dialler wants to reach this process. If the port is in
// use, the error is syscall.EADDRINUSE.
func Listen(ctx context.Context, addr string, id Identity, handler Handler) (*Listener, error) {
	return listen(ctx, addr, id, handler, defaultLimits)
}

func listen(ctx context.Context, addr string, id Identity, handler Handler, lim limits) (*Listener, error) {
	ln, err := (&net.ListenConfig{Control: unpaced}).Listen(ctx, "tcp", addr)
	if err != nil {
		if errors.Is(err, syscall.EADDRINUSE) {
			return nil, fmt.Errorf("tcp: another process uses %s: choose another port, or leave it out: %w", addr, err)
		}
		return nil, fmt.Errorf("tcp: cannot listen: %w", err)
	}
	l := &Listener{
		ln: ln, id: id, handler: handler, limits: lim,
		slots: make(chan struct{}, lim.slots), accepted: make(chan struct{}, lim.accepted), pending: map[*incoming]bool{},
	}
	l.ctx, l.cancel = context.WithCancel(context.Background())
	l.done.Go(l.run)
	return l, nil
}

// Addr returns the address at which the Listener listens.
func (l *Listener) Addr() net.Addr { return l.ln.Addr() }

// Close stops listening and ends handshakes in progress. Accepted Links stay open.
func (l *Listener) Close() error {
	l.cancel()
	err := l.ln.Close()
	l.done.Wait()
	if errors.Is(err, net.ErrClosed) {
		return nil
	}
	return err
}

func (l *Listener) run() {
	for l.waitForSlot() {
		conn, err := l.ln.Accept()
		if err != nil {
			<-l.slots
			if l.ctx.Err() != nil || errors.Is(err, net.ErrClosed) {
				return
			}
			l.handler.AcceptFailed(err)
			select { // the connection may have died, or descriptors have run out: the next may succeed
			case <-time.After(acceptRetry):
			case <-l.ctx.Done():
			}
			continue
		}
		in := &incoming{Conn: conn}
		l.mu.Lock()
		l.pending[in] = true
		l.mu.Unlock()
		l.done.Go(func() { l.handshake(in) })
	}
}

// waitForSlot waits for a free slot and takes it. It returns false if the Listener is
// closed.
func (l *Listener) waitForSlot() bool {
	for {
		select {
		case l.slots <- struct{}{}:
			return true
		default:
		}
		select {
		case l.slots <- struct{}{}:
			return true
		case <-time.After(l.evict()):
		case <-l.ctx.Done():
			return false
		}
	}
}

// evict closes the connection that has been silent the longest, if it exceeds the limit.
// It returns after how long to call it again.
func (l *Listener) evict() time.Duration {
	l.mu.Lock()
	defer l.mu.Unlock()
	var worst *incoming
	var longest time.Duration
	for in, open := range l.pending {
		if s := in.silence(); open && s >= longest {
			worst, longest = in, s
		}
	}
	if worst == nil || longest < l.limits.idle {
		return max(l.limits.idle-longest, l.limits.idle/100)
	}
	l.pending[worst] = false
	_ = worst.Close()
	return l.limits.idle / 100 // its slot is free before that
}

// keep excludes a connection from eviction. It returns false if it has been evicted. The
// handshake calls it before it answers: a dialler that has an answer uses the connection.
func (l *Listener) keep(in *incoming) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	open := l.pending[in]
	delete(l.pending, in)
	return open
}

// releaseSlot frees the slot of a connection.
func (l *Listener) releaseSlot(in *incoming) {
	l.mu.Lock()
	delete(l.pending, in)
	l.mu.Unlock()
	<-l.slots
}
