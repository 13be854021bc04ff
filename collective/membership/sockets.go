package membership

import (
	"context"
	"errors"
	"log"
	"net"
	"net/netip"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/hashicorp/memberlist"
)

// sockets is memberlist's own transport with three changes: every stream has a
// deadline, Shutdown ends all dials and streams in progress, and incoming streams
// are limited. So no goroutine keeps waiting for a peer that does not answer, and
// a stranger, whose bytes memberlist collects before it finds that they have the
// wrong key, costs little.
type sockets struct {
	*memberlist.NetTransport
	ctx      context.Context // until Shutdown
	cancel   context.CancelFunc
	deadline time.Duration
	streams  chan net.Conn
	pump     sync.WaitGroup
	stop     chan struct{} // ends the pump, after the listeners
	once     sync.Once
	incoming admission
}

// bindTries is how many free ports are tried. A port that is free for TCP may be in
// use for UDP.
const bindTries = 10

// listen opens gossip's TCP and UDP ports.
func listen(at netip.AddrPort, deadline time.Duration, logger *log.Logger) (*sockets, error) {
	tries := 1
	if at.Port() == 0 {
		tries = bindTries
	}
	var inner *memberlist.NetTransport
	var err error
	for range tries {
		inner, err = memberlist.NewNetTransport(&memberlist.NetTransportConfig{
			BindAddrs: []string{at.Addr().String()}, BindPort: int(at.Port()), Logger: logger,
		})
		if err == nil || !inUse(err) {
			break
		}
	}
	if err != nil {
		if inUse(err) {
			return nil, &PortInUseError{Addr: at, Err: err}
		}
		return nil, err
	}
	s := &sockets{NetTransport: inner, deadline: deadline, streams: make(chan net.Conn), stop: make(chan struct{})}
	s.ctx, s.cancel = context.WithCancel(context.Background())
	s.pump.Go(s.forward)
	return s, nil
}

// inUse looks at the text, because memberlist does not wrap the listener's error.
func inUse(err error) bool { return strings.Contains(err.Error(), syscall.EADDRINUSE.Error()) }

// forward passes on incoming streams, each tied to the transport.
func (s *sockets) forward() {
	for {
		select {
		case conn := <-s.NetTransport.StreamCh():
			conn = s.incoming.admit(s.tie(conn))
			select {
			case s.streams <- conn:
			case <-s.ctx.Done():
				_ = conn.Close()
			}
		case <-s.stop:
			return
		}
	}
}

// StreamCh returns the channel of incoming streams.
func (s *sockets) StreamCh() <-chan net.Conn { return s.streams }

// DialTimeout opens a stream that has the transport's deadline.
func (s *sockets) DialTimeout(addr string, timeout time.Duration) (net.Conn, error) {
	return s.DialAddressTimeout(memberlist.Address{Addr: addr}, timeout)
}

// DialAddressTimeout is DialTimeout to a named node.
func (s *sockets) DialAddressTimeout(a memberlist.Address, timeout time.Duration) (net.Conn, error) {
	d := net.Dialer{Timeout: timeout}
	conn, err := d.DialContext(s.ctx, "tcp", a.Addr)
	if err != nil {
		return nil, err
	}
	return &answer{Conn: s.tie(conn)}, nil
}

func (s *sockets) tie(conn net.Conn) net.Conn {
	_ = conn.SetDeadline(time.Now().Add(s.deadline)) // fails only on a closed stream, as will its use
	return &tied{Conn: conn, untie: context.AfterFunc(s.ctx, func() { _ = conn.Close() })}
}

// Shutdown closes everything. It may be called more than once.
func (s *sockets) Shutdown() error {
	var err error
	s.once.Do(func() {
		s.cancel()
		err = s.NetTransport.Shutdown()
		close(s.stop)
		s.pump.Wait()
	})
	return err
}

// tied is a stream that closes with its transport.
type tied struct {
	net.Conn
	untie func() bool
}

func (t *tied) Close() error {
	t.untie()
	return t.Conn.Close()
}

// answer is an outgoing stream. If what answers is another program, reading fails. memberlist
// itself, if it has a key, takes any program for one without a key.
type answer struct {
	net.Conn
	begun bool
}

// The first byte of what memberlist sends is one of these.
const (
	lastMessage = 13  // its kinds of messages are 0 to 13
	labelByte   = 244 // the name of a cluster comes first
)

// errForeign has memberlist's text for a message of no known kind.
var errForeign = errors.New("invalid msgType")

func (a *answer) Read(b []byte) (int, error) {
	n, err := a.Conn.Read(b)
	if n > 0 && !a.begun {
		a.begun = true
		if b[0] > lastMessage && b[0] != labelByte {
			return 0, errForeign
		}
	}
	return n, err
}

var _ memberlist.NodeAwareTransport = (*sockets)(nil)
