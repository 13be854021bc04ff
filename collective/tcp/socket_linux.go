package tcp

import (
	"io"
	"sync"
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/ringtrain/ringtrain/collective"
)

// A socket is the nonblocking socket of a stream without TLS. The Go runtime's poller
// does not know it; a poller of this package does. One goroutine may receive while
// another sends.
type socket struct {
	rank   int // the peer
	queue  int // its index in poller.sockets and poller.queues
	fd     int
	mu     sync.Mutex // guards closed, and keeps fd open
	closed bool

	head    [collective.HeaderSize]byte // of the message being received
	have    int                         // bytes of head that peek has read
	in      iovecs                      // what is missing of it on this stream
	lowat   int                         // SO_RCVLOWAT; 0 if it was never set
	checked bool                        // head has arrived and matches, or is not expected on this stream
}

// An outgoing is a message that was posted, or a stripe of one.
type outgoing struct {
	head [collective.HeaderSize]byte // unused in stripes after the first
	iovecs
}

// descriptor duplicates the file descriptor of a Link. It fails under TLS.
func (l *Link) descriptor() (fd int, ok bool) {
	conn, ok := l.raw.(syscall.Conn)
	if !ok || l.encrypted() {
		return 0, false
	}
	raw, err := conn.SyscallConn()
	if err != nil {
		return 0, false
	}
	if raw.Control(func(own uintptr) { fd, err = unix.FcntlInt(own, unix.F_DUPFD_CLOEXEC, 0) }) != nil || err != nil {
		return 0, false
	}
	return fd, true
}

// expect prepares the sockets for the stripes of a message, one on each. It compares the
// header if peek has read it.
func expect(sockets []*socket, h *collective.Header, parts [][]byte, self int) error {
	if err := checkLength(h, parts); err != nil {
		return err
	}
	for i, s := range sockets {
		lo, hi := stripe(i, len(sockets), int(h.Len))
		if s.checked = i > 0; s.checked {
			s.in.set(nil, parts, lo, hi)
			continue
		}
		s.in.set(s.head[s.have:], parts, lo, hi)
		if err := s.check(h, self); err != nil {
			return err
		}
	}
	return nil
}

// check compares the header with h once all of it has arrived.
func (s *socket) check(h *collective.Header, self int) error {
	if s.checked || s.have+s.in.total-s.in.left < collective.HeaderSize {
		return nil
	}
	var got collective.Header
	got.Get(s.head[:])
	s.checked, s.have = true, 0
	return h.Match(&got, self, s.rank)
}

// read reads what has arrived of an expected message on all of its sockets.
func read(sockets []*socket, h *collective.Header, self int) (moved, done bool, err error) {
	done = true
	for _, s := range sockets {
		if s.in.left == 0 {
			continue
		}
		some, all, err := s.read(h, self)
		if err != nil {
			return moved, false, err
		}
		moved, done = moved || some, done && all
	}
	return moved, done, nil
}

// read reads what has arrived of this socket's stripe. It reads the header and payload
// in one system call, so the payload of a message that does not match may already be in
// the parts. Their contents are unspecified then anyway.
func (s *socket) read(h *collective.Header, self int) (moved, done bool, err error) {
	n, err := s.in.move(unix.SYS_READV, s.fd)
	switch {
	case err == unix.EAGAIN:
		return false, false, nil
	case err != nil:
		return false, false, err
	case n == 0:
		return false, false, io.EOF
	}
	if err := s.check(h, self); err != nil {
		return true, false, err
	}
	if s.in.left == 0 {
		s.in.drop()
	}
	return true, s.in.left == 0, nil
}

// wakeAfter makes poll(2) wake a receiver only when the given number of bytes, or the
// rest of the message, has arrived, instead of for every packet of a slow network.
func (s *socket) wakeAfter(bytes int) {
	if bytes = min(bytes, s.in.left); bytes != max(s.lowat, 1) {
		s.lowat = bytes
		_ = unix.SetsockoptInt(s.fd, unix.SOL_SOCKET, unix.SO_RCVLOWAT, bytes)
	}
}

// write sends as much of a message as the socket accepts.
func (s *socket) write(m *outgoing) (moved, done bool, err error) {
	n, err := m.move(unix.SYS_WRITEV, s.fd)
	if err == unix.EAGAIN {
		return false, false, nil
	}
	if done = err == nil && m.left == 0; done {
		m.drop()
	}
	return n > 0, done, err
}

// shutdown ends the connection and all calls in progress. The descriptor stays open.
func (s *socket) shutdown() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.closed {
		_ = unix.Shutdown(s.fd, unix.SHUT_RDWR)
	}
}

// close closes the descriptor. No call is in progress.
func (s *socket) close() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.closed {
		s.closed = true
		_ = unix.Close(s.fd)
	}
}
