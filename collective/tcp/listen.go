package tcp

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"sync"
	"syscall"
	"time"
)

// acceptPause is how long a Listener that cannot accept waits before it tries
// again.
const acceptPause = 50 * time.Millisecond

// manners are the limits of a Listener. They bound what strangers can take, and
// keep nobody out who belongs: one that is hung up on dials again.
type manners struct {
	slots    int           // visitors in their handshake; others wait in the kernel's queue
	crowd    time.Duration // of silence within a step, then a visitor makes way if all slots are taken
	visit    time.Duration // that a handshake takes at most
	answered int           // visitors that were let in and have not confirmed
}

var defaultManners = manners{slots: 128, crowd: time.Second, visit: time.Minute, answered: 4096}

// errBusy is why a visitor is hung up on without a word: it may dial again.
var errBusy = errors.New("too many connections wait")

// A Handler decides about Links that others dial. Its methods are called from
// several goroutines at once and must not wait.
type Handler interface {
	// Allow says why a Link is not wanted, or nil. The dialler is told, and does
	// not try again.
	Allow(peer Identity, p Purpose) error
	// Accept takes over a Link that was allowed and that the dialler uses.
	Accept(l *Link)
	// Unheard tells that a connection could not be accepted.
	Unheard(err error)
}

// A Listener accepts Links. Close it to stop.
type Listener struct {
	ln      net.Listener
	id      Identity
	handler Handler
	manners manners

	ctx      context.Context // ends with Close
	cancel   context.CancelFunc
	slots    chan struct{} // one for each visitor
	answered chan struct{}
	done     sync.WaitGroup

	mu       sync.Mutex
	visitors map[*visitor]bool // that have a slot; false if it was asked to leave
}

// Listen accepts connections at addr (host:port, port 0 for any) until Close.
// The handler is asked about, and given, every Link whose dialler meant this
// process. A port that is taken is syscall.EADDRINUSE.
func Listen(ctx context.Context, addr string, id Identity, handler Handler) (*Listener, error) {
	return listen(ctx, addr, id, handler, defaultManners)
}

func listen(ctx context.Context, addr string, id Identity, handler Handler, m manners) (*Listener, error) {
	ln, err := (&net.ListenConfig{}).Listen(ctx, "tcp", addr)
	if err != nil {
		if errors.Is(err, syscall.EADDRINUSE) {
			return nil, fmt.Errorf("tcp: port in use: %s is taken by another process; choose another or leave the port out: %w", addr, err)
		}
		return nil, fmt.Errorf("tcp: listening: %w", err)
	}
	l := &Listener{
		ln: ln, id: id, handler: handler, manners: m,
		slots: make(chan struct{}, m.slots), answered: make(chan struct{}, m.answered), visitors: map[*visitor]bool{},
	}
	l.ctx, l.cancel = context.WithCancel(context.Background())
	l.done.Go(l.run)
	return l, nil
}

// Addr is where the Listener listens.
func (l *Listener) Addr() net.Addr { return l.ln.Addr() }

// Close stops listening and ends handshakes in progress. Links that were
// accepted live on.
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
	for l.room() {
		conn, err := l.ln.Accept()
		if err != nil {
			<-l.slots
			if l.ctx.Err() != nil || errors.Is(err, net.ErrClosed) {
				return
			}
			l.handler.Unheard(err)
			select { // a connection that died before it was accepted, or no descriptors: the next may do
			case <-time.After(acceptPause):
			case <-l.ctx.Done():
			}
			continue
		}
		v := &visitor{Conn: conn}
		l.mu.Lock()
		l.visitors[v] = true
		l.mu.Unlock()
		l.done.Go(func() { l.greet(v) })
	}
}

// room waits until one more may say hello; false when the Listener is closed.
func (l *Listener) room() bool {
	for {
		select {
		case l.slots <- struct{}{}:
			return true
		default:
		}
		select {
		case l.slots <- struct{}{}:
			return true
		case <-time.After(l.makeRoom()):
		case <-l.ctx.Done():
			return false
		}
	}
}

// makeRoom hangs up on the visitor that has been silent the longest, if that is
// too long, and returns when to look again.
func (l *Listener) makeRoom() time.Duration {
	l.mu.Lock()
	defer l.mu.Unlock()
	var worst *visitor
	var longest time.Duration
	for v, stays := range l.visitors {
		if s := v.silence(); stays && s >= longest {
			worst, longest = v, s
		}
	}
	if worst == nil || longest < l.manners.crowd {
		return max(l.manners.crowd-longest, l.manners.crowd/100)
	}
	l.visitors[worst] = false
	_ = worst.Close()
	return l.manners.crowd / 100 // the slot is free before that
}

// leave gives a visitor's slot to the next.
func (l *Listener) leave(v *visitor) {
	l.mu.Lock()
	delete(l.visitors, v)
	l.mu.Unlock()
	<-l.slots
}

// greet is the accepting half of the handshake. A visitor that was let in keeps
// no slot. Its Link counts once it has confirmed: until then it may have given
// up, and dial again.
func (l *Listener) greet(v *visitor) {
	ctx, cancel := context.WithTimeout(l.ctx, l.manners.visit)
	defer cancel()
	link := &Link{conn: v.Conn, raw: v.Conn}
	stop := link.watch(ctx, v.SetDeadline)
	err := l.shake(ctx, link, v)
	l.leave(v)
	if err == nil {
		err = link.confirmed()
		<-l.answered
	}
	if !stop() || err != nil {
		_ = v.Close()
		return
	}
	v.met.Store(true)
	tune(v.Conn, link.purpose.Channel)
	l.handler.Accept(link)
}

// shake exchanges hellos with a dialler, and tells it why not if it speaks the
// protocol. Garbage and silence get no answer. Without an error, one of answered
// is taken.
func (l *Listener) shake(ctx context.Context, link *Link, v *visitor) error {
	if err := link.sealFrom(ctx, l.id.Secret, v); err != nil {
		return err
	}
	var from io.Reader = v
	if link.sealed() {
		from = link.conn
	}
	theirs, err := readHello(from)
	switch {
	case errors.Is(err, errSealed):
		refusePlainly(v, lacksKey)
		return err
	case err != nil && !errors.Is(err, ErrRefused):
		return err
	case err == nil:
		v.step()
		if err = link.proves(theirs.from); err == nil {
			err = l.judge(theirs)
		}
	}
	link.peer, link.purpose = theirs.from, theirs.purpose
	if err != nil {
		if errors.Is(err, errBusy) {
			return err
		}
		mine := hello{from: l.id, purpose: theirs.purpose, refusal: err.Error()}
		if _, sendErr := link.conn.Write(mine.append(nil)); sendErr == nil {
			linger(v)
		}
		return err
	}
	select {
	case l.answered <- struct{}{}:
	default:
		return errBusy
	}
	mine := hello{from: l.id, purpose: theirs.purpose}
	if _, err = link.conn.Write(mine.append(nil)); err != nil {
		<-l.answered
	}
	return err
}

// judge says why a dialler is turned away.
func (l *Listener) judge(theirs hello) error {
	switch {
	case theirs.from.Cluster != l.id.Cluster:
		return fmt.Errorf("this is cluster %q, not %q", l.id.Cluster, theirs.from.Cluster)
	case theirs.want.Name != l.id.Name:
		return fmt.Errorf("this is %s, not %s", l.id.Name, theirs.want.Name)
	case theirs.want.Nonce != l.id.Nonce:
		return fmt.Errorf("%s has been started again since", l.id.Name)
	}
	return l.handler.Allow(theirs.from, theirs.purpose)
}
