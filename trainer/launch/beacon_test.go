//go:build unix

package launch_test

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// A beacon accepts a connection from each process of a test. The kernel closes it when
// the process ends, whatever its parent, so the test knows which processes live. Their
// pids would not tell: init may not have reaped them.
type beacon struct {
	t     *testing.T
	l     net.Listener
	conns chan sighting
}

// A sighting is one live process.
type sighting struct {
	part string
	pid  int
	conn net.Conn
}

func newBeacon(t *testing.T) *beacon {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	b := &beacon{t: t, l: l, conns: make(chan sighting, 16)}
	over := make(chan struct{})
	go func() {
		defer close(over)
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			s := sighting{conn: conn}
			line, _ := bufio.NewReader(conn).ReadString('\n')
			_, _ = fmt.Sscan(line, &s.part, &s.pid)
			t.Cleanup(func() { _ = conn.Close() })
			b.conns <- s
		}
	}()
	t.Cleanup(func() { _ = l.Close(); <-over })
	return b
}

func (b *beacon) env() string { return envBeacon + "=" + b.l.Addr().String() }

// next waits until another process connects.
func (b *beacon) next() sighting {
	b.t.Helper()
	select {
	case s := <-b.conns:
		return s
	case <-time.After(long):
		b.t.Fatal("no process connected")
		return sighting{}
	}
}

// meet waits for one process of each part.
func (b *beacon) meet(parts ...string) map[string]sighting {
	b.t.Helper()
	met := map[string]sighting{}
	for range parts {
		s := b.next()
		met[s.part] = s
	}
	for _, part := range parts {
		require.Contains(b.t, met, part)
	}
	return met
}

// requireGone waits until the process has ended, at most for the given time.
func (s sighting) requireGone(t *testing.T, within time.Duration) {
	t.Helper()
	require.NoError(t, s.conn.SetReadDeadline(time.Now().Add(within)))
	_, err := io.Copy(io.Discard, s.conn)
	if ne, ok := err.(net.Error); ok && ne.Timeout() {
		t.Fatalf("%s (pid %d) is still alive after %v", s.part, s.pid, within)
	}
}
