package membership

import (
	"context"
	"log"
	"net"
	"net/netip"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/hashicorp/memberlist"
)

// sockets is memberlist's own transport with two changes: every stream has a
// deadline, and Shutdown ends all dials and streams in progress. So no goroutine
// keeps waiting for a peer that does not answer.
type sockets struct {
	*memberlist.NetTransport
	ctx      context.Context // until Shutdown
	cancel   context.CancelFunc
	deadline time.Duration
	streams  chan net.Conn
	pump     sync.WaitGroup
	stop     chan struct{} // ends the pump, after the listeners
	once     sync.Once
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
			conn = s.tie(conn)
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
	return s.tie(conn), nil
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

var _ memberlist.NodeAwareTransport = (*sockets)(nil)
