package tcp

import (
	"context"
	"encoding/binary"
	"io"
	"time"

	"golang.org/x/sys/unix"

	"github.com/ringtrain/ringtrain/collective"
)

// nextFromSockets is Abilities.Next where all peers have sockets. It sleeps in poll(2), on
// the sockets and on an eventfd that the end of ctx signals.
func (t *Transport) nextFromSockets(ctx context.Context, from []int, h *collective.Header) (rank int, err error) {
	p := &t.poller
	p.using.RLock()
	defer p.using.RUnlock()
	if err := t.broken(); err != nil {
		return -1, err
	}
	fds := p.nextPoll[:0]
	for _, r := range from {
		s := t.peers[r].sockets[0]
		if s.peeked(h) {
			return r, nil
		}
		s.wakeAtOnce()
		fds = append(fds, unix.PollFd{Fd: int32(s.fd), Events: unix.POLLIN})
	}
	fds = append(fds, unix.PollFd{Fd: -1, Events: unix.POLLIN}) // for sleepUntilReadable
	p.nextPoll = fds
	for polls := 1; ; polls++ {
		if p.spins.reached(polls) {
			polls = 0
			if err := p.sleepUntilReadable(ctx, fds); err != nil {
				return -1, err
			}
		} else {
			p.pause(polls)
			_, _ = unix.Poll(fds, 0)
		}
		for i, r := range from {
			if fds[i].Revents == 0 {
				continue
			}
			s := t.peers[r].sockets[0]
			if err := s.peek(); err != nil {
				return -1, t.linkFailed(context.Background(), r, "receive", err)
			}
			if s.peeked(h) {
				return r, nil
			}
		}
		if err := t.broken(); err != nil {
			return -1, err
		}
		if ctx.Err() != nil {
			return -1, nil
		}
	}
}

// sleepUntilReadable sleeps until a socket can be read or ctx ends. The last of fds is
// free.
func (p *poller) sleepUntilReadable(ctx context.Context, fds []unix.PollFd) error {
	end := &fds[len(fds)-1]
	if ctx.Done() != nil {
		if err := p.openSignal(); err != nil {
			return err
		}
		defer collective.WakeOnCancel(ctx, p.signal)()
		end.Fd = int32(p.ended)
	}
	began := time.Now()
	_, _ = unix.Poll(fds, sleepMost)
	p.spins.slept(time.Since(began))
	if end.Revents != 0 {
		p.clearSignal()
	}
	return nil
}

// openSignal makes the eventfd, once.
func (p *poller) openSignal() error {
	if p.ended >= 0 {
		return nil
	}
	fd, err := unix.Eventfd(0, unix.EFD_NONBLOCK|unix.EFD_CLOEXEC)
	if err == nil {
		p.ended = fd
	}
	return err
}

// signal wakes nextFromSockets.
func (p *poller) signal() {
	_, _ = unix.Write(p.ended, binary.NativeEndian.AppendUint64(nil, 1))
}

// clearSignal undoes signal.
func (p *poller) clearSignal() {
	var count [8]byte
	_, _ = unix.Read(p.ended, count[:])
}

// peek reads what has arrived of the next message's header, and leaves it to expect.
func (s *socket) peek() error {
	n, err := unix.Read(s.fd, s.head[s.have:])
	switch {
	case err == unix.EAGAIN, err == unix.EINTR:
		return nil
	case err != nil:
		return err
	case n == 0:
		return io.EOF
	}
	s.have += n
	return nil
}

// peeked reports whether peek has read all of a header, and copies it to h.
func (s *socket) peeked(h *collective.Header) bool {
	if s.have < len(s.head) {
		return false
	}
	h.Get(s.head[:])
	return true
}

// wakeAtOnce makes poll(2) wake a receiver when anything arrives.
func (s *socket) wakeAtOnce() {
	if s.lowat > 1 {
		s.lowat = 1
		_ = unix.SetsockoptInt(s.fd, unix.SOL_SOCKET, unix.SO_RCVLOWAT, 1)
	}
}
