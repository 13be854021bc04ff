package tcp

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/ringtrain/ringtrain/collective"
)

// socketPair returns a socket and a descriptor that is connected to it.
func socketPair(t testing.TB) (*socket, int) {
	fds, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_NONBLOCK, 0)
	require.NoError(t, err)
	s := &socket{fd: fds[0]}
	t.Cleanup(func() {
		s.close()
		_ = unix.Close(fds[1])
	})
	return s, fds[1]
}

// Whatever part of a header peek has read, expect continues after it.
func TestExpectAfterPeek(t *testing.T) {
	want := collective.Header{Job: 7, Seq: 1, Call: collective.Call{Kind: collective.KindMessage}, Len: 3}
	sent := make([]byte, collective.HeaderSize, collective.HeaderSize+3)
	want.Put(sent)
	sent = append(sent, 1, 2, 3)
	for peeked := range collective.HeaderSize + 1 {
		for _, matches := range []bool{true, false} {
			s, fd := socketPair(t)
			var got collective.Header
			require.NoError(t, s.peek(), "nothing is there yet")
			_, err := unix.Write(fd, sent[:peeked])
			require.NoError(t, err)
			require.NoError(t, s.peek())
			require.Equal(t, peeked, s.have)
			require.Equal(t, peeked == collective.HeaderSize, s.peeked(&got))
			_, err = unix.Write(fd, sent[peeked:])
			require.NoError(t, err)
			h, payload, done := want, make([]byte, 3), false
			if !matches {
				h.Seq++
			}
			err = expect([]*socket{s}, &h, [][]byte{payload}, 0)
			for err == nil && !done {
				_, done, err = read([]*socket{s}, &h, 0)
			}
			if !matches {
				require.ErrorIs(t, err, collective.ErrMismatch)
				continue
			}
			require.NoError(t, err)
			require.Equal(t, []byte{1, 2, 3}, payload)
			require.Zero(t, s.have)
		}
	}
}

// After a receiver has waited for many bytes, it can wait for one.
func TestWakeAtOnce(t *testing.T) {
	s, fd := tcpPair(t)
	s.in.left = 1000
	s.wakeAfter(1000)
	_, err := unix.Write(fd, []byte{1})
	require.NoError(t, err)
	fds := []unix.PollFd{{Fd: int32(s.fd), Events: unix.POLLIN}}
	n, err := unix.Poll(fds, 0)
	require.NoError(t, err)
	require.Zero(t, n)
	s.wakeAtOnce()
	require.Eventually(t, func() bool { n, _ := unix.Poll(fds, 0); return n == 1 }, time.Second, time.Millisecond)
}

// tcpPair is socketPair over TCP: only that knows how many bytes a receiver waits for.
func tcpPair(t testing.TB) (*socket, int) {
	var fds [3]int
	for i := range 2 {
		fd, err := unix.Socket(unix.AF_INET, unix.SOCK_STREAM, 0)
		require.NoError(t, err)
		t.Cleanup(func() { _ = unix.Close(fd) })
		fds[i] = fd
	}
	require.NoError(t, unix.Bind(fds[0], &unix.SockaddrInet4{Addr: [4]byte{127, 0, 0, 1}}))
	require.NoError(t, unix.Listen(fds[0], 1))
	at, err := unix.Getsockname(fds[0])
	require.NoError(t, err)
	require.NoError(t, unix.Connect(fds[1], at))
	fds[2], _, err = unix.Accept(fds[0])
	require.NoError(t, err)
	s := &socket{fd: fds[2]}
	t.Cleanup(s.close)
	return s, fds[1]
}
