package shm

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"
)

// idleServer returns a server that accepts no connection until start is called.
func idleServer(t *testing.T, backlog int) *fdServer {
	fd, err := unix.Socket(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC|unix.SOCK_NONBLOCK, 0)
	require.NoError(t, err)
	name := fmt.Sprintf("@ringtrain-%032x", time.Now().UnixNano())
	require.NoError(t, unix.Bind(fd, &unix.SockaddrUnix{Name: name}))
	require.NoError(t, unix.Listen(fd, backlog))
	file := os.NewFile(uintptr(fd), name)
	l, err := net.FileListener(file)
	require.NoError(t, err)
	require.NoError(t, file.Close())
	d := newServer(l.(*net.UnixListener), oneArena(t).duplicate)
	t.Cleanup(d.close)
	return d
}

// oneArena returns Arenas of one piece.
func oneArena(t *testing.T) *Arenas {
	a := new(Arenas)
	_, err := a.Alloc(1)
	require.NoError(t, err)
	t.Cleanup(func() { assert.NoError(t, a.Close()) })
	return a
}

func (d *fdServer) start() { d.serving.Go(func() { d.serve(d.listener.AcceptUnix) }) }

// dial connects to a server and sends nothing.
func dial(t *testing.T, d *fdServer) *net.UnixConn {
	conn, err := net.DialUnix("unix", nil, d.listener.Addr().(*net.UnixAddr))
	require.NoError(t, err)
	t.Cleanup(func() { _ = conn.Close() })
	return conn
}

// requireServed fetches a descriptor.
func requireServed(t *testing.T, d *fdServer) {
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
	defer cancel()
	at := d.address()
	fd, _, err := fetchDescriptor(ctx, at[:], 1)
	require.NoError(t, err)
	require.NoError(t, unix.Close(fd))
}

// Failures to accept a client do not end the server.
func TestAcceptIsRetried(t *testing.T) {
	d := idleServer(t, 10)
	failures := []error{unix.EMFILE, unix.ENFILE, unix.ECONNABORTED, unix.ENOBUFS, unix.EPERM}
	d.serving.Go(func() {
		d.serve(func() (*net.UnixConn, error) {
			if len(failures) > 0 {
				err := failures[0]
				failures = failures[1:]
				return nil, &net.OpError{Op: "accept", Err: os.NewSyscallError("accept4", err)}
			}
			return d.listener.AcceptUnix()
		})
	})
	requireServed(t, d)
}

// A server that is closed while it waits to accept again ends at once.
func TestServerClosesBetweenAttempts(t *testing.T) {
	d := idleServer(t, 10)
	tried := make(chan struct{}, 1000)
	d.serving.Go(func() {
		d.serve(func() (*net.UnixConn, error) {
			tried <- struct{}{}
			return nil, unix.EMFILE
		})
	})
	<-tried
	<-tried
	d.close()
}

// The server duplicates a descriptor again after a transient error, but not if
// there is no such number.
func TestDuplicateIsRetried(t *testing.T) {
	d := idleServer(t, 10)
	duplicate, times := d.duplicate, atomic.Int32{}
	d.duplicate = func(id uint64) (int, int, error) {
		if times.Add(1) < 3 {
			return -1, 0, unix.EMFILE
		}
		return duplicate(id)
	}
	d.start()
	requireServed(t, d)
	at := d.address()
	_, _, err := fetchDescriptor(context.Background(), at[:], 2)
	require.ErrorContains(t, err, "no descriptor of the shared memory")
	require.Equal(t, int32(4), times.Load())
}

// A client that finds the server's queue full retries until there is room or ctx
// ends.
func TestFullBacklogIsWaitedFor(t *testing.T) {
	d := idleServer(t, 1)
	full := func() error {
		conn, err := net.DialUnix("unix", nil, d.listener.Addr().(*net.UnixAddr))
		if err == nil {
			t.Cleanup(func() { _ = conn.Close() })
		}
		return err
	}
	var err error
	for range 10 {
		if err = full(); err != nil {
			break
		}
	}
	require.ErrorIs(t, err, unix.EAGAIN)
	at := d.address()
	ended, cancel := context.WithTimeout(context.Background(), 10*time.Millisecond)
	defer cancel()
	_, _, err = fetchDescriptor(ended, at[:], 1)
	require.Error(t, err)
	require.ErrorIs(t, ended.Err(), context.DeadlineExceeded, "it gave up before ctx ended: %v", err)
	accept := make(chan struct{})
	d.serving.Go(func() {
		d.serve(func() (*net.UnixConn, error) {
			<-accept
			return d.listener.AcceptUnix()
		})
	})
	done := make(chan error, 1)
	go func() {
		fd, _, err := fetchDescriptor(context.Background(), at[:], 1)
		_ = unix.Close(fd)
		done <- err
	}()
	close(accept)
	require.NoError(t, <-done)
}

// The server has at most mostClients clients. It accepts another when one leaves.
func TestClientsAreBounded(t *testing.T) {
	d := idleServer(t, 4*mostClients)
	d.timeout = time.Hour
	var silent []*net.UnixConn
	for range mostClients + 10 {
		silent = append(silent, dial(t, d))
	}
	accepts := make(chan struct{})
	d.serving.Go(func() {
		d.serve(func() (*net.UnixConn, error) {
			select {
			case accepts <- struct{}{}:
			case <-d.ended:
			}
			return d.listener.AcceptUnix()
		})
	})
	clients := func() int {
		d.mu.Lock()
		defer d.mu.Unlock()
		return len(d.clients)
	}
	for range mostClients + 1 {
		<-accepts
	}
	require.Equal(t, mostClients, clients()) // and one waits for a slot
	require.NoError(t, silent[0].Close())
	<-accepts
	require.Equal(t, mostClients, clients())
}

// A client that sends nothing loses its slot after the timeout.
func TestSilentClientsLeave(t *testing.T) {
	d := idleServer(t, 4*mostClients)
	d.timeout = 50 * time.Millisecond
	for range mostClients + 10 {
		dial(t, d)
	}
	d.start()
	requireServed(t, d)
}

// Only processes of this user and of root are trusted.
func TestTrustedUsers(t *testing.T) {
	for _, c := range []struct {
		uid  uint32
		own  int
		want bool
	}{{0, 0, true}, {0, 1000, true}, {1000, 1000, true}, {1000, 0, false}, {1001, 1000, false}, {1 << 31, -1 << 31, false}, {65534, 1000, false}} {
		require.Equal(t, c.want, trusts(c.uid, c.own), "a client of user %d, a server of user %d", c.uid, c.own)
	}
	d := idleServer(t, 10)
	conn := dial(t, d)
	uid, err := peerUser(conn)
	require.NoError(t, err)
	require.Equal(t, uint32(os.Geteuid()), uid)
}

// EnvStranger makes the test binary connect to the server that it names; see
// Intrude.
const EnvStranger = "SHM_TEST_STRANGER"

// Intrude opens more connections than the server has slots, and sends nothing. It
// returns an error unless the server closes each of them at once.
func Intrude(name string) error {
	var conns []*net.UnixConn
	for range mostClients + 10 {
		conn, err := net.DialUnix("unix", nil, &net.UnixAddr{Name: name, Net: "unix"})
		if err != nil {
			return err
		}
		defer conn.Close()
		conns = append(conns, conn)
	}
	for i, conn := range conns {
		_ = conn.SetReadDeadline(time.Now().Add(serveTimeout / 2))
		if _, err := conn.Read(make([]byte, 1)); errors.Is(err, os.ErrDeadlineExceeded) {
			return fmt.Errorf("the server keeps connection %d of user %d open", i, os.Geteuid())
		}
	}
	return nil
}

// The server disconnects processes of other users at once. They take no slot.
func TestOtherUsersAreDisconnected(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("only root can start a process of another user")
	}
	d := idleServer(t, 4*mostClients)
	d.start()
	cmd := exec.Command("/proc/self/exe")
	cmd.Dir = "/"
	cmd.Env = []string{EnvStranger + "=" + d.listener.Addr().String()}
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: 65534, Gid: 65534}}
	output, err := cmd.CombinedOutput()
	if errors.Is(err, unix.EPERM) || errors.Is(err, unix.EACCES) {
		t.Skip("cannot start a process of another user: ", err)
	}
	require.NoError(t, err, "%s", output)
	requireServed(t, d)
}

// A client that sends nothing, for example because it is stopped, does not delay
// close. A server that does not answer does not delay the end of a fetch.
func TestSilenceDelaysNobody(t *testing.T) {
	var a Arenas
	_, err := a.Alloc(1)
	require.NoError(t, err)
	defer a.Close()
	d, err := startServer(a.duplicate)
	require.NoError(t, err)
	at := d.address()
	silent, err := net.Dial("unix", d.listener.Addr().String())
	require.NoError(t, err)
	defer silent.Close()
	fd, _, err := fetchDescriptor(context.Background(), at[:], 1) // served after the silent client
	require.NoError(t, err)
	require.NoError(t, unix.Close(fd))
	begin := time.Now()
	d.close()
	require.Less(t, time.Since(begin), serveTimeout)

	l, err := net.ListenUnix("unix", &net.UnixAddr{Name: d.listener.Addr().String(), Net: "unix"})
	require.NoError(t, err)
	defer l.Close()
	ctx, cancel := context.WithCancel(context.Background())
	var peer sync.WaitGroup
	peer.Go(func() {
		conn, err := l.Accept()
		if err == nil {
			defer conn.Close()
			_, _ = io.ReadFull(conn, make([]byte, tokenBytes+8))
		}
		cancel()
		<-ctx.Done()
		_, _ = conn.Read(make([]byte, 1)) // until the client disconnects
	})
	begin = time.Now()
	_, _, err = fetchDescriptor(ctx, at[:], 1)
	require.Error(t, err)
	require.Less(t, time.Since(begin), serveTimeout)
	peer.Wait()
}
