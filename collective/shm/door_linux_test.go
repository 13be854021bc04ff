package shm

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"
)

// hung is a door on an address of its own, where nobody serves until it is told.
func hung(t *testing.T, backlog int) *door {
	fd, err := unix.Socket(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC|unix.SOCK_NONBLOCK, 0)
	require.NoError(t, err)
	name := fmt.Sprintf("@ringtrain-%032x", time.Now().UnixNano())
	require.NoError(t, unix.Bind(fd, &unix.SockaddrUnix{Name: name}))
	require.NoError(t, unix.Listen(fd, backlog))
	file := os.NewFile(uintptr(fd), name)
	l, err := net.FileListener(file)
	require.NoError(t, err)
	require.NoError(t, file.Close())
	d := newDoor(l.(*net.UnixListener), memory(t).duplicate)
	t.Cleanup(d.close)
	return d
}

// memory is one piece of it.
func memory(t *testing.T) *Arenas {
	a := new(Arenas)
	_, err := a.Alloc(1)
	require.NoError(t, err)
	t.Cleanup(func() { assert.NoError(t, a.Close()) })
	return a
}

func (d *door) open() { d.serving.Go(func() { d.serve(d.listener.AcceptUnix) }) }

// visit connects to a door and says nothing.
func visit(t *testing.T, d *door) *net.UnixConn {
	conn, err := net.DialUnix("unix", nil, d.listener.Addr().(*net.UnixAddr))
	require.NoError(t, err)
	t.Cleanup(func() { _ = conn.Close() })
	return conn
}

// letIn calls at a door, and is given memory.
func letIn(t *testing.T, d *door) {
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
	defer cancel()
	at := d.describe()
	fd, _, err := call(ctx, at[:], 1)
	require.NoError(t, err)
	require.NoError(t, unix.Close(fd))
}

// Guests that cannot be accepted do not end the service.
func TestAcceptIsRetried(t *testing.T) {
	d := hung(t, 10)
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
	letIn(t, d)
}

// A door that is closed between two attempts ends at once.
func TestDoorClosesBetweenAttempts(t *testing.T) {
	d := hung(t, 10)
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

// A guest waits while its memory cannot be duplicated, but not for what is not
// there.
func TestDuplicateIsRetried(t *testing.T) {
	d := hung(t, 10)
	give, times := d.give, atomic.Int32{}
	d.give = func(id uint64) (int, int, error) {
		if times.Add(1) < 3 {
			return -1, 0, unix.EMFILE
		}
		return give(id)
	}
	d.open()
	letIn(t, d)
	at := d.describe()
	_, _, err := call(context.Background(), at[:], 2)
	require.ErrorContains(t, err, "descriptor did not come")
	require.Equal(t, int32(4), times.Load())
}

// Who calls while too many others do waits until there is room, or ctx ends.
func TestFullBacklogIsWaitedFor(t *testing.T) {
	d := hung(t, 1)
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
	at := d.describe()
	ended, cancel := context.WithTimeout(context.Background(), 10*time.Millisecond)
	defer cancel()
	_, _, err = call(ended, at[:], 1)
	require.Error(t, err)
	require.ErrorIs(t, ended.Err(), context.DeadlineExceeded, "not before: %v", err)
	let := make(chan struct{})
	d.serving.Go(func() {
		d.serve(func() (*net.UnixConn, error) {
			<-let
			return d.listener.AcceptUnix()
		})
	})
	done := make(chan error, 1)
	go func() {
		fd, _, err := call(context.Background(), at[:], 1)
		_ = unix.Close(fd)
		done <- err
	}()
	close(let)
	require.NoError(t, <-done)
}

// Guests take no more than so many slots; one more comes in when one has gone.
func TestGuestsAreBounded(t *testing.T) {
	d := hung(t, 4*mostGuests)
	d.patience = time.Hour
	var silent []*net.UnixConn
	for range mostGuests + 10 {
		silent = append(silent, visit(t, d))
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
	guests := func() int {
		d.mu.Lock()
		defer d.mu.Unlock()
		return len(d.guests)
	}
	for range mostGuests + 1 {
		<-accepts
	}
	require.Equal(t, mostGuests, guests()) // and one waits for a slot
	require.NoError(t, silent[0].Close())
	<-accepts
	require.Equal(t, mostGuests, guests())
}

// A silent guest loses its slot after a while.
func TestSilentGuestsLeave(t *testing.T) {
	d := hung(t, 4*mostGuests)
	d.patience = 50 * time.Millisecond
	for range mostGuests + 10 {
		visit(t, d)
	}
	d.open()
	letIn(t, d)
}

// Processes of this user are admitted, and of root, and no others.
func TestUsersAdmitted(t *testing.T) {
	for _, c := range []struct {
		uid  uint32
		own  int
		want bool
	}{{0, 0, true}, {0, 1000, true}, {1000, 1000, true}, {1000, 0, false}, {1001, 1000, false}, {1 << 31, -1 << 31, false}, {65534, 1000, false}} {
		require.Equal(t, c.want, trusts(c.uid, c.own), "%d at a door of %d", c.uid, c.own)
	}
	d := hung(t, 10)
	conn := visit(t, d)
	uid, err := peerUser(conn)
	require.NoError(t, err)
	require.Equal(t, uint32(os.Geteuid()), uid)
}

// EnvVisitor makes the test binary a stranger that calls at the door named.
const EnvVisitor = "SHM_TEST_VISITOR"

// Visit is what the stranger does: it holds more connections than there are
// slots, says nothing, and finds each of them closed at once.
func Visit(name string) error {
	var conns []*net.UnixConn
	for range mostGuests + 10 {
		conn, err := net.DialUnix("unix", nil, &net.UnixAddr{Name: name, Net: "unix"})
		if err != nil {
			return err
		}
		defer conn.Close()
		conns = append(conns, conn)
	}
	for i, conn := range conns {
		_ = conn.SetReadDeadline(time.Now().Add(welcomeTime / 2))
		if _, err := conn.Read(make([]byte, 1)); errors.Is(err, os.ErrDeadlineExceeded) {
			return fmt.Errorf("connection %d of user %d is held", i, os.Geteuid())
		}
	}
	return nil
}

// Another user's processes are turned away at once, and take no slot.
func TestOtherUsersAreTurnedAway(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("only root can start a process of another user")
	}
	d := hung(t, 4*mostGuests)
	d.open()
	cmd := exec.Command("/proc/self/exe")
	cmd.Dir = "/"
	cmd.Env = []string{EnvVisitor + "=" + d.listener.Addr().String()}
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: 65534, Gid: 65534}}
	said, err := cmd.CombinedOutput()
	if errors.Is(err, unix.EPERM) || errors.Is(err, unix.EACCES) {
		t.Skip("a process of another user cannot be started here: ", err)
	}
	require.NoError(t, err, "%s", said)
	letIn(t, d)
}
