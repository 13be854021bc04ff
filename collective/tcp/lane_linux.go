package tcp

import (
	"io"
	"sync"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/ringtrain/ringtrain/collective"
)

// A lane is the socket of a plain bulk Link, outside of the Go runtime's poller:
// whoever moves messages looks at it, and sleeps in poll(2) when there is
// nothing to move. One goroutine may receive while another sends.
type lane struct {
	rank   int // the peer
	queue  int // of what is posted here, its index in drive.queues
	fd     int
	mu     sync.Mutex // held while closed is changed or relied upon
	closed bool

	head    [collective.HeaderSize]byte // of the message that is being received
	in      vectors
	low     int  // SO_RCVLOWAT, 0 if it was never set
	checked bool // head has come and is the one that was expected
}

// An outgoing is a message that was posted, or a stripe of one.
type outgoing struct {
	head [collective.HeaderSize]byte
	vectors
}

// await prepares for a message, which comes in stripes, one in each lane.
func await(lanes []*lane, h *collective.Header, parts [][]byte) error {
	if err := room(h, parts); err != nil {
		return err
	}
	for i, l := range lanes {
		lo, hi := stripe(i, len(lanes), int(h.Len))
		if l.checked = i > 0; l.checked {
			l.in.begin(nil, parts, lo, hi)
		} else {
			l.in.begin(l.head[:], parts, lo, hi)
		}
	}
	return nil
}

// read takes what has come of the message in all of its lanes.
func read(lanes []*lane, h *collective.Header, self int) (moved, done bool, err error) {
	done = true
	for _, l := range lanes {
		if l.in.left == 0 {
			continue
		}
		some, all, err := l.read(h, self)
		if err != nil {
			return moved, false, err
		}
		moved, done = moved || some, done && all
	}
	return moved, done, nil
}

// read takes what has come of the lane's part. Header and payload are read
// together; of a message that is not the expected one the payload may lie
// anywhere in the parts, which is of no use to anybody then.
func (l *lane) read(h *collective.Header, self int) (moved, done bool, err error) {
	n, err := l.in.move(unix.SYS_READV, l.fd)
	switch {
	case err == unix.EAGAIN:
		return false, false, nil
	case err != nil:
		return false, false, err
	case n == 0:
		return false, false, io.EOF
	}
	if !l.checked && l.in.whole-l.in.left >= collective.HeaderSize {
		var got collective.Header
		got.Get(l.head[:])
		if err := h.Match(&got, self, l.rank); err != nil {
			return true, false, err
		}
		l.checked = true
	}
	if l.in.left == 0 {
		l.in.forget()
	}
	return true, l.in.left == 0, nil
}

// wakeFor has poll(2) wake a sleeper when so many bytes have come, or the rest
// of the message: not for every packet of a slow link.
func (l *lane) wakeFor(bytes int) {
	if bytes = min(bytes, l.in.left); bytes != max(l.low, 1) {
		l.low = bytes
		_ = unix.SetsockoptInt(l.fd, unix.SOL_SOCKET, unix.SO_RCVLOWAT, bytes)
	}
}

// write sends what the socket takes of a message, or of a stripe.
func (l *lane) write(m *outgoing) (moved, done bool, err error) {
	n, err := m.move(unix.SYS_WRITEV, l.fd)
	if err == unix.EAGAIN {
		return false, false, nil
	}
	if done = err == nil && m.left == 0; done {
		m.forget()
	}
	return n > 0, done, err
}

// shut ends the connection: calls in progress return, the descriptor stays.
func (l *lane) shut() {
	l.mu.Lock()
	defer l.mu.Unlock()
	if !l.closed {
		_ = unix.Shutdown(l.fd, unix.SHUT_RDWR)
	}
}

// close frees the descriptor. No call is in progress.
func (l *lane) close() {
	l.mu.Lock()
	defer l.mu.Unlock()
	if !l.closed {
		l.closed = true
		_ = unix.Close(l.fd)
	}
}

// vectors are pieces of memory that are read or written in order, as far as a
// socket goes at a time.
type vectors struct {
	iov   []unix.Iovec
	next  int // the first that is not done
	left  int // bytes that are not done
	whole int // bytes
}

const (
	mostVectors = 1024     // pieces of memory that the kernel takes at a time (UIO_MAXIOV)
	quickBytes  = 32 << 10 // are moved within a few microseconds
)

// begin starts over with other memory: the head, which may be nil, and the bytes
// [lo, hi) of the parts.
func (v *vectors) begin(head []byte, parts [][]byte, lo, hi int) {
	v.iov = v.iov[:0]
	v.add(head)
	for _, p := range parts {
		if a, b := max(lo, 0), min(hi, len(p)); a < b {
			v.add(p[a:b])
		}
		lo, hi = lo-len(p), hi-len(p)
	}
	v.next, v.left = 0, 0
	for _, piece := range v.iov {
		v.left += int(piece.Len)
	}
	v.whole = v.left
}

func (v *vectors) add(p []byte) {
	if len(p) > 0 {
		v.iov = append(v.iov, unix.Iovec{Base: unsafe.SliceData(p)})
		v.iov[len(v.iov)-1].SetLen(len(p))
	}
}

// forget lets go of the memory.
func (v *vectors) forget() { clear(v.iov) }

// move makes one system call, readv or writev. It is EAGAIN when the socket has
// nothing, or takes nothing.
func (v *vectors) move(call uintptr, fd int) (int, error) {
	do := unix.Syscall // the runtime may go on without this thread meanwhile
	if v.left <= quickBytes {
		do = unix.RawSyscall
	}
	for {
		first := &v.iov[v.next]
		r, _, errno := do(call, uintptr(fd), uintptr(unsafe.Pointer(first)), uintptr(min(len(v.iov)-v.next, mostVectors)))
		if errno == unix.EINTR {
			continue
		}
		if errno != 0 {
			return 0, errno
		}
		v.advance(int(r))
		return int(r), nil
	}
}

// advance marks n bytes as done.
func (v *vectors) advance(n int) {
	v.left -= n
	for n > 0 {
		p := &v.iov[v.next]
		if uint64(n) < uint64(p.Len) {
			p.Base = (*byte)(unsafe.Add(unsafe.Pointer(p.Base), n))
			p.SetLen(int(p.Len) - n)
			return
		}
		n -= int(p.Len)
		v.next++
	}
}
