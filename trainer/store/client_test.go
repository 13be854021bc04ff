package store

import (
	"context"
	"fmt"
	"io"
	"net"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
)

func TestNewClient(t *testing.T) {
	for _, addr := range []string{"", "nowhere", ":7947", "127.0.0.1:", "127.0.0.1:0"} {
		_, err := NewClient(ClientConfig{Addr: addr})
		require.EqualError(t, err, fmt.Sprintf("the address of a store must be HOST:PORT, not %q", addr))
	}
}

// A call waits for a server that is not there yet, and ends when its patience or its
// context does.
func TestPatience(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	addr := l.Addr().String()
	require.NoError(t, l.Close())

	c, err := NewClient(ClientConfig{Addr: addr, Patience: 50 * time.Millisecond})
	require.NoError(t, err)
	_, _, err = c.Get(t.Context(), "w")
	require.EqualError(t, err, "no store answers at "+addr+" within 50ms: connection refused; start one with ringtrain store serve")
	require.NoError(t, c.Close())
	_, _, err = c.Get(t.Context(), "w")
	require.ErrorIs(t, err, ErrClosed)

	c, err = NewClient(ClientConfig{Addr: addr})
	require.NoError(t, err)
	defer c.Close()
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Millisecond)
	defer cancel()
	_, err = c.Keys(ctx, "")
	require.ErrorIs(t, err, context.DeadlineExceeded)

	done := make(chan error, 1)
	go func() {
		_, err := c.Set(t.Context(), "w", Raw(nil), 0)
		done <- err
	}()
	serving(t, opened(t, t.TempDir()), ServerConfig{Addr: addr})
	require.NoError(t, <-done)
}

// A call takes as long as bytes move, and continues with a new connection if one breaks then.
func TestSlowTransfer(t *testing.T) {
	s := serving(t, opened(t, t.TempDir()), ServerConfig{})
	for _, breaks := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			const patience = 3 * time.Second
			c, err := NewClient(ClientConfig{Addr: s.Addr().String(), Patience: patience})
			require.NoError(t, err)
			defer c.Close()
			near, far := net.Pipe()
			c.idle = []net.Conn{near}
			go func() {
				defer far.Close()
				for b := make([]byte, pieceSize); ; {
					<-time.After(patience / 4)
					if n, err := far.Read(b); err != nil || n < pieceSize {
						break
					}
				}
				answer := reply{status: statusDone, version: 9}.encode()
				require.NoError(t, writeMessage(io.Discard, answer)) // sets its length
				for _, b := range answer {
					<-time.After(patience / 4)
					if _, err := far.Write([]byte{b}); err != nil || breaks {
						return
					}
				}
			}()
			begin := time.Now()
			version, err := c.Set(t.Context(), "w", Raw(make([]byte, 16*pieceSize)), 0)
			require.NoError(t, err)
			require.Greater(t, time.Since(begin), patience)
			want := uint64(9)
			if breaks {
				want = 1
			}
			require.Equal(t, want, version)
		})
	}
}

// A call does not try all connections to a server that is gone, one after another.
func TestDeadConnections(t *testing.T) {
	c := connected(t, serving(t, opened(t, t.TempDir()), ServerConfig{}), nil)
	tried := 0
	for range maxIdle {
		near, far := net.Pipe()
		require.NoError(t, far.Close())
		c.idle = append(c.idle, deadConn{near, &tried})
	}
	_, err := c.Set(t.Context(), "w", Raw(nil), 0)
	require.NoError(t, err)
	require.Equal(t, 1, tried)
}

// A deadConn counts the writes that fail.
type deadConn struct {
	net.Conn
	tried *int
}

func (c deadConn) Write(b []byte) (int, error) {
	*c.tried++
	return c.Conn.Write(b)
}

// If the connection breaks before the acknowledgement, the update is sent again and takes
// effect once. The client replaces a connection that is silent.
func TestLostAcknowledgement(t *testing.T) {
	for _, silent := range []bool{false, true} {
		s := serving(t, opened(t, t.TempDir()), ServerConfig{})
		l, err := net.Listen("tcp", "127.0.0.1:0")
		require.NoError(t, err)
		c, err := NewClient(ClientConfig{Addr: l.Addr().String(), Patience: 3 * time.Second})
		require.NoError(t, err)
		var work sync.WaitGroup
		work.Go(func() { lossy(t, l, s.Addr().String(), silent) })
		for n := range uint64(5) {
			version, err := c.Set(t.Context(), "w", Raw([]byte{byte(n)}), n)
			require.NoError(t, err)
			require.Equal(t, n+1, version)
			if silent && n == 0 {
				break // each takes a second
			}
		}
		require.NoError(t, c.Close())
		require.NoError(t, l.Close())
		work.Wait()
	}
}

// lossy forwards connections to a server. Of every other one it loses all after the
// greeting that the server sends: it breaks the connection, or is silent.
func lossy(t *testing.T, l net.Listener, server string, silent bool) {
	var work sync.WaitGroup
	defer work.Wait()
	for n := 0; ; n++ {
		client, err := l.Accept()
		if err != nil {
			return
		}
		conn, err := net.Dial("tcp", server)
		require.NoError(t, err)
		work.Go(func() {
			_, _ = io.Copy(conn, client)
			_ = conn.Close()
		})
		work.Go(func() {
			greeting := int64(helloSize + lengthSize + 9)
			_, _ = io.CopyN(client, conn, greeting)
			if n%2 == 0 {
				_, _ = io.ReadFull(conn, make([]byte, 1)) // the update is on disk
				if !silent {
					_ = client.Close()
				}
				_, _ = io.Copy(io.Discard, conn)
			} else {
				_, _ = io.CopyN(client, conn, lengthSize+9) // one acknowledgement
				_ = client.Close()
			}
		})
	}
}
