package store

import (
	"bytes"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"strings"
	"sync"
	"time"

	"github.com/ringtrain/ringtrain/collective/secret"
)

// Limits of a Server.
const (
	maxClients    = 1024             // connected at the same time
	handshakeTime = 10 * time.Second // maximum duration of a handshake
	messageTime   = 2 * time.Minute  // maximum time in which no bytes of a message move
	acceptRetry   = 10 * time.Millisecond
)

// The identity of a server in its certificate. The nonce is that of every start, because
// clients stay when the server is started again.
const (
	serverName  = "ringtrain store"
	serverNonce = 0
	clientName  = "ringtrain store client"
)

// ErrNoKey means that a Server without a key would listen where other machines can
// connect.
var ErrNoKey = errors.New("no key")

// ServerConfig configures a Server.
type ServerConfig struct {
	Addr string // ADDRESS:PORT to listen on
	// Key, if not nil, encrypts and authenticates all connections. Without it, Addr must
	// be a loopback address, or Insecure be set, which trusts everybody who can connect.
	Key      *secret.Key
	Insecure bool
	// Log, if not nil, receives a line about each client that is refused, and one if the
	// disk cannot be written. It must be safe for concurrent use.
	Log func(line string)
}

// A Server serves a DB to Clients.
type Server struct {
	db       *DB
	listener net.Listener
	identity *secret.Identity // nil without a key
	log      func(line string)
	warned   sync.Once // that the disk cannot be written

	ctx    context.Context // ends with Close
	cancel context.CancelFunc
	work   sync.WaitGroup
	slots  chan struct{}

	mu    sync.Mutex
	conns map[net.Conn]bool
}

// Serve starts a Server. The caller closes it, and then the DB.
func Serve(db *DB, c ServerConfig) (*Server, error) {
	s := &Server{db: db, log: c.Log, slots: make(chan struct{}, maxClients), conns: map[net.Conn]bool{}}
	if c.Key != nil {
		id, err := c.Key.Identity(serverName, serverNonce)
		if err != nil {
			return nil, err
		}
		s.identity = id
	}
	var err error
	if s.listener, err = net.Listen("tcp", c.Addr); err != nil {
		return nil, err
	}
	if at := s.Addr(); c.Key == nil && !c.Insecure && !at.Addr().Unmap().IsLoopback() {
		return nil, errors.Join(fmt.Errorf("%w: every process that can reach %v could read and change the store: make a key with ringtrain keygen, or give --insecure (ServerConfig.Insecure) on a network that you trust", ErrNoKey, at), s.listener.Close())
	}
	s.ctx, s.cancel = context.WithCancel(context.Background())
	s.work.Go(s.acceptAll)
	return s, nil
}

// Addr returns the address that the Server listens on.
func (s *Server) Addr() netip.AddrPort { return s.listener.Addr().(*net.TCPAddr).AddrPort() }

// Close closes all connections and waits for their goroutines.
func (s *Server) Close() error {
	s.cancel()
	err := s.listener.Close()
	if errors.Is(err, net.ErrClosed) {
		err = nil // closed before
	}
	s.mu.Lock()
	for c := range s.conns {
		_ = c.Close()
	}
	s.mu.Unlock()
	s.work.Wait()
	return err
}

func (s *Server) acceptAll() {
	for {
		select {
		case s.slots <- struct{}{}: // if all are in use, new connections wait in the kernel's queue
		case <-s.ctx.Done():
			return
		}
		conn, err := s.listener.Accept()
		if err != nil {
			<-s.slots
			if errors.Is(err, net.ErrClosed) {
				return
			}
			select { // descriptors have run out, or the client has hung up: the next may succeed
			case <-time.After(acceptRetry):
			case <-s.ctx.Done():
			}
			continue
		}
		s.work.Go(func() {
			defer func() { <-s.slots }()
			if s.track(conn) {
				s.converse(conn)
			}
			s.mu.Lock()
			defer s.mu.Unlock()
			delete(s.conns, conn)
			_ = conn.Close()
		})
	}
}

// track makes Close close a connection. It returns false after Close.
func (s *Server) track(c net.Conn) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.conns[c] = true
	return s.ctx.Err() == nil
}

// converse serves one client until it leaves.
func (s *Server) converse(raw net.Conn) {
	conn, err := s.handshake(raw)
	renew := func() { _ = raw.SetDeadline(time.Now().Add(messageTime)) }
	messages := moving{conn, renew}
	for err == nil {
		_ = raw.SetDeadline(time.Time{})
		var message []byte
		message, err = readMessage(messages, maxMessage)
		var r request
		if err == nil {
			if r, err = decodeRequest(message); errors.Is(err, errMalformed) {
				err = fmt.Errorf("%w: a malformed request", ErrRefused)
			}
		}
		if err != nil {
			break
		}
		var answer reply
		if answer, err = s.answer(r); err == nil {
			renew()
			err = writeMessage(messages, answer.encode())
		}
	}
	if errors.Is(err, ErrRefused) {
		s.report(raw, err)
		_ = raw.SetDeadline(time.Now().Add(handshakeTime))
		if writeMessage(conn, replyTo(err).encode()) == nil {
			secret.Linger(raw, raw)
		}
	}
}

func (s *Server) report(conn net.Conn, err error) {
	if s.log != nil {
		s.log(fmt.Sprintf("refused %v: %s", conn.RemoteAddr(), strings.TrimPrefix(err.Error(), ErrRefused.Error()+": ")))
	}
}

// answer carries out a request. An error means that the Server ends.
func (s *Server) answer(r request) (reply, error) {
	a := reply{status: statusDone}
	var err error
	switch r.op {
	case opGet:
		var v Value
		v, a.version, err = s.db.Get(s.ctx, r.key)
		a.rest = AppendValue(nil, v)
	case opSet:
		a.version, err = s.db.set(s.ctx, update{key: r.key, value: r.value, version: r.version, token: r.token})
	case opKeys:
		var keys []string
		keys, err = s.db.page(s.ctx, r.key, r.after)
		for _, k := range keys {
			a.rest = appendText(a.rest, k)
		}
	}
	switch {
	case s.ctx.Err() != nil, errors.Is(err, ErrClosed):
		return a, ErrClosed // without a reply, so that the client asks the next server
	case errors.Is(err, errUnwritable) && s.log != nil:
		s.warned.Do(func() { s.log(err.Error()) })
		fallthrough
	case err != nil:
		return replyTo(err), nil
	}
	return a, nil
}

// handshake authenticates a client and agrees on the protocol. The error is ErrRefused
// if the client is to be told why.
func (s *Server) handshake(raw net.Conn) (net.Conn, error) {
	_ = raw.SetDeadline(time.Now().Add(handshakeTime))
	conn := raw
	if s.identity != nil {
		conn = tls.Server(raw, s.identity.Server())
		err := conn.(*tls.Conn).HandshakeContext(s.ctx)
		switch {
		case secret.IsPlain(err, magic):
			_, _ = raw.Write(hello())
			return raw, fmt.Errorf("%w: it has a key, and the client has none: give both the same key file", ErrRefused)
		case err != nil:
			if errors.Is(err, secret.ErrOtherKey) || errors.Is(err, secret.ErrClock) {
				s.report(raw, err)
			}
			secret.Linger(raw, raw) // crypto/tls has sent an alert
			return conn, err
		}
	}
	theirs := make([]byte, helloSize)
	if _, err := io.ReadFull(conn, theirs); err != nil {
		return conn, err
	}
	isTLS := s.identity == nil && secret.IsTLS(theirs)
	if !isTLS && !bytes.HasPrefix(theirs, []byte(magic)) {
		return conn, errors.New("not a client of a store") // it gets no answer
	}
	if _, err := conn.Write(hello()); err != nil {
		return conn, err
	}
	switch {
	case isTLS:
		return conn, fmt.Errorf("%w: it has no key, and the client has one: give both the same key file", ErrRefused)
	case !bytes.Equal(theirs, hello()):
		return conn, fmt.Errorf("%w: it speaks version %c of the protocol, and the client version %q: run the same ringtrain on both sides", ErrRefused, protocol, theirs[len(magic)])
	}
	return conn, writeMessage(conn, reply{status: statusDone}.encode())
}

func hello() []byte { return append([]byte(magic), protocol) }
