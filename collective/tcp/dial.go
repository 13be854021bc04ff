package tcp

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"slices"
	"sync"
	"syscall"
	"time"
)

// handshakeTime is how long either side waits for the other's hello.
const handshakeTime = 5 * time.Second

// acceptPause is how long a Listener that cannot accept waits before it tries
// again.
const acceptPause = 50 * time.Millisecond

// maxHandshakes is how many connections a Listener lets say hello at a time;
// others wait in the kernel's queue. While they do, whoever takes longer than
// crowdTime is hung up on, so that those who connect and say nothing keep
// nobody out for long.
const (
	maxHandshakes = 128
	crowdTime     = time.Second
)

// Dial connects to a process, checks that it is the peer that was meant, and
// says what for. ctx bounds the whole. A refusal is ErrRefused with the
// reason that the other side gave.
func Dial(ctx context.Context, addr string, id Identity, want Peer, purpose Purpose) (*Link, error) {
	ctx, cancel := context.WithTimeout(ctx, handshakeTime)
	defer cancel()
	conn, err := (&net.Dialer{}).DialContext(ctx, "tcp", addr)
	if err != nil {
		return nil, fmt.Errorf("tcp: connecting to %s at %s: %w", want.Name, addr, err)
	}
	l, err := meet(ctx, conn, id, want, purpose)
	if err != nil {
		_ = conn.Close()
		return nil, fmt.Errorf("tcp: greeting %s at %s: %w", want.Name, addr, err)
	}
	return l, nil
}

// meet is the dialler's half of the handshake.
func meet(ctx context.Context, conn net.Conn, id Identity, want Peer, purpose Purpose) (*Link, error) {
	l := &Link{conn: conn, raw: conn, purpose: purpose}
	defer l.watch(ctx, conn.SetDeadline)()
	if err := l.sealTo(ctx, id.Secret, want); err != nil {
		return nil, because(ctx, err)
	}
	mine := hello{from: id, want: want, purpose: purpose}
	if _, err := l.conn.Write(mine.append(nil)); err != nil {
		return nil, because(ctx, dialFault(err))
	}
	theirs, err := readHello(l.conn)
	switch {
	case errors.Is(err, io.EOF):
		return nil, fmt.Errorf("%w: it hung up", ErrNotOurs)
	case err != nil:
		return nil, because(ctx, dialFault(err))
	case theirs.refusal != "":
		return nil, fmt.Errorf("%w: %s", ErrRefused, theirs.refusal)
	case theirs.from.Name != want.Name || theirs.from.Nonce != want.Nonce:
		return nil, fmt.Errorf("%w: %s answered", ErrRefused, theirs.from.Name)
	}
	l.peer = theirs.from
	tune(conn, purpose.Channel)
	return l, nil
}

// A Handler decides about Links that others dial. Its methods are called from
// several goroutines at once and must not wait.
type Handler interface {
	// Allow says why a Link is not wanted, or nil. The dialler is told.
	Allow(peer Identity, p Purpose) error
	// Accept takes over a Link that was allowed.
	Accept(l *Link)
}

// A Listener accepts Links. Close it to stop.
type Listener struct {
	ln      net.Listener
	id      Identity
	handler Handler

	ctx    context.Context // ends with Close
	cancel context.CancelFunc
	slots  chan struct{}
	done   sync.WaitGroup

	mu      sync.Mutex
	waiting []*visitor // who says hello just now, in the order they came
}

// A visitor is a connection whose handshake is in progress.
type visitor struct {
	conn  net.Conn
	since time.Time
}

// Listen accepts connections at addr (host:port, port 0 for any) until Close.
// The handler is asked about, and given, every Link whose dialler meant this
// process. A port that is taken is syscall.EADDRINUSE.
func Listen(ctx context.Context, addr string, id Identity, handler Handler) (*Listener, error) {
	ln, err := (&net.ListenConfig{}).Listen(ctx, "tcp", addr)
	if err != nil {
		if errors.Is(err, syscall.EADDRINUSE) {
			return nil, fmt.Errorf("tcp: port in use: %s is taken by another process; choose another or leave the port out: %w", addr, err)
		}
		return nil, fmt.Errorf("tcp: listening: %w", err)
	}
	l := &Listener{ln: ln, id: id, handler: handler, slots: make(chan struct{}, maxHandshakes)}
	l.ctx, l.cancel = context.WithCancel(context.Background())
	l.done.Go(l.run)
	return l, nil
}

// Addr is where the Listener listens.
func (l *Listener) Addr() net.Addr { return l.ln.Addr() }

// Close stops listening and waits for handshakes in progress to end. Links
// that were accepted live on.
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
	for {
		if !l.room() {
			return
		}
		conn, err := l.ln.Accept()
		if err != nil {
			<-l.slots
			if l.ctx.Err() != nil || errors.Is(err, net.ErrClosed) {
				return
			}
			select { // a connection that died before it was accepted, or no descriptors: the next may do
			case <-time.After(acceptPause):
			case <-l.ctx.Done():
			}
			continue
		}
		v := &visitor{conn: conn, since: time.Now()}
		l.mu.Lock()
		l.waiting = append(l.waiting, v)
		l.mu.Unlock()
		l.done.Go(func() {
			defer func() { <-l.slots }()
			l.greet(v)
		})
	}
}

// room waits until one more may say hello; false when the Listener is closed.
func (l *Listener) room() bool {
	for {
		select {
		case l.slots <- struct{}{}:
			return true
		case <-time.After(l.crowded()):
		case <-l.ctx.Done():
			return false
		}
	}
}

// crowded hangs up on who takes too long, if there is no room, and says when to
// look again.
func (l *Listener) crowded() time.Duration {
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.slots) < cap(l.slots) || len(l.waiting) == 0 {
		return crowdTime
	}
	v := l.waiting[0]
	if left := crowdTime - time.Since(v.since); left > 0 {
		return left
	}
	_ = v.conn.Close()
	l.waiting = l.waiting[1:]
	return crowdTime / 100 // the slot is free before that
}

// served takes a visitor off the list; false if it was hung up on.
func (l *Listener) served(v *visitor) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	i := slices.Index(l.waiting, v)
	if i < 0 {
		return false
	}
	l.waiting = slices.Delete(l.waiting, i, i+1)
	return true
}

// greet is the accepting half of the handshake.
func (l *Listener) greet(v *visitor) {
	conn := v.conn
	ctx, cancel := context.WithTimeout(l.ctx, handshakeTime)
	defer cancel()
	link := &Link{conn: conn, raw: conn}
	stop := link.watch(ctx, conn.SetDeadline)
	err := l.shake(ctx, link)
	stop()
	if !l.served(v) || err != nil || ctx.Err() != nil || hungUp(conn) { // who had to wait may have given up
		_ = conn.Close()
		return
	}
	tune(conn, link.purpose.Channel)
	l.handler.Accept(link)
}

// shake exchanges hellos with a dialler, and tells it why not if it speaks the
// protocol. Garbage and silence get no answer.
func (l *Listener) shake(ctx context.Context, link *Link) error {
	if err := link.sealFrom(ctx, l.id.Secret); err != nil {
		return err
	}
	theirs, err := readHello(link.conn)
	switch {
	case errors.Is(err, errSealed):
		refusePlainly(link.raw, lacksKey)
		return err
	case err != nil && !errors.Is(err, ErrRefused):
		return err
	case err == nil:
		if err = link.proves(theirs.from); err == nil {
			err = l.judge(theirs)
		}
	}
	mine := hello{from: l.id, purpose: theirs.purpose}
	if err != nil {
		mine.refusal = err.Error()
	}
	if _, sendErr := link.conn.Write(mine.append(nil)); err == nil {
		err = sendErr
	}
	link.peer, link.purpose = theirs.from, theirs.purpose
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
