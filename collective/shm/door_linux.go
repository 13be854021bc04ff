package shm

import (
	"context"
	"crypto/rand"
	"crypto/subtle"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"sync"
	"time"

	"golang.org/x/sys/unix"
)

// Limits of a door.
const (
	welcomeTime = 5 * time.Second // for one who calls
	mostGuests  = 64              // at a time; the kernel keeps more waiting

	firstPause = time.Millisecond // before something is tried again, then twice as long,
	mostPause  = 100 * time.Millisecond
)

// A door is a unix socket at which other processes of the same user get the
// descriptors of memory, if they know the token.
type door struct {
	listener *net.UnixListener
	token    [tokenBytes]byte
	give     func(id uint64) (fd, size int, err error)
	patience time.Duration // with a guest
	slots    chan struct{} // holds one for each guest
	ended    chan struct{}
	serving  sync.WaitGroup

	mu     sync.Mutex
	closed bool
	guests map[*net.UnixConn]bool
}

// openDoor begins to give what duplicate makes to who asks for it by number.
func openDoor(duplicate func(id uint64) (fd, size int, err error)) (*door, error) {
	var name [nameBytes]byte
	_, _ = rand.Read(name[:])
	listener, err := net.ListenUnix("unix", &net.UnixAddr{Name: "@ringtrain-" + hex.EncodeToString(name[:]), Net: "unix"})
	if err != nil {
		return nil, err
	}
	d := newDoor(listener, duplicate)
	d.serving.Go(func() { d.serve(listener.AcceptUnix) })
	return d, nil
}

// newDoor is a door where nobody serves yet.
func newDoor(listener *net.UnixListener, duplicate func(id uint64) (fd, size int, err error)) *door {
	d := &door{
		listener: listener, give: duplicate, patience: welcomeTime,
		slots: make(chan struct{}, mostGuests), ended: make(chan struct{}), guests: map[*net.UnixConn]bool{},
	}
	_, _ = rand.Read(d.token[:])
	return d
}

// serve welcomes guests until the door is closed. That one cannot be accepted,
// mostly because descriptors have run out, says nothing about the next.
func (d *door) serve(accept func() (*net.UnixConn, error)) {
	pause := firstPause
	for {
		conn, err := accept()
		if err != nil {
			if errors.Is(err, net.ErrClosed) || !idle(d.ended, &pause) {
				return
			}
			continue
		}
		pause = firstPause
		if !d.admits(conn) {
			_ = conn.Close()
			continue
		}
		select {
		case d.slots <- struct{}{}:
		case <-d.ended:
		}
		if !d.greet(conn) {
			_ = conn.Close()
			return
		}
		d.serving.Go(func() {
			defer d.dismiss(conn)
			d.welcome(conn)
		})
	}
}

// admits reports whether a process may ask at all: the token is for processes of
// this user, and of root, who can read it anyway.
func (d *door) admits(conn *net.UnixConn) bool {
	uid, err := peerUser(conn)
	return err == nil && trusts(uid, os.Geteuid())
}

func trusts(uid uint32, own int) bool { return uid == 0 || int64(uid) == int64(own) }

// peerUser is the user of the process at the other end when it connected, or
// began to listen.
func peerUser(conn *net.UnixConn) (uint32, error) {
	raw, err := conn.SyscallConn()
	if err != nil {
		return 0, err
	}
	var peer *unix.Ucred
	var failed error
	if err := raw.Control(func(fd uintptr) {
		peer, failed = unix.GetsockoptUcred(int(fd), unix.SOL_SOCKET, unix.SO_PEERCRED)
	}); err != nil {
		return 0, err
	}
	if failed != nil {
		return 0, failed
	}
	return peer.Uid, nil
}

// welcome gives a guest what it asks for.
func (d *door) welcome(conn *net.UnixConn) {
	until := time.Now().Add(d.patience)
	_ = conn.SetDeadline(until)
	var asked [tokenBytes + 8]byte
	if _, err := io.ReadFull(conn, asked[:]); err != nil || subtle.ConstantTimeCompare(asked[:tokenBytes], d.token[:]) != 1 {
		return
	}
	pause := firstPause
	fd, size, err := d.give(binary.LittleEndian.Uint64(asked[tokenBytes:]))
	for err != nil && passes(err) && time.Now().Before(until) && idle(d.ended, &pause) {
		fd, size, err = d.give(binary.LittleEndian.Uint64(asked[tokenBytes:]))
	}
	if err != nil {
		return
	}
	defer unix.Close(fd)
	var answer [8]byte
	binary.LittleEndian.PutUint64(answer[:], uint64(size))
	_, _, _ = conn.WriteMsgUnix(answer[:], unix.UnixRights(fd), nil)
}

// idle waits for a while, each time longer; false if end came first.
func idle(end <-chan struct{}, pause *time.Duration) bool {
	timer := time.NewTimer(*pause)
	defer timer.Stop()
	*pause = min(2**pause, mostPause)
	select {
	case <-timer.C:
		return true
	case <-end:
		return false
	}
}

// passes reports whether an error may be gone a little later: no descriptors or
// memory just now, or too many who call at the same door.
func passes(err error) bool {
	for _, e := range []error{unix.EAGAIN, unix.EMFILE, unix.ENFILE, unix.ENOBUFS, unix.ENOMEM, unix.ECONNABORTED, os.ErrDeadlineExceeded, context.DeadlineExceeded} {
		if errors.Is(err, e) {
			return true
		}
	}
	return false
}

// greet notes who calls, so that close need not wait for them; false if the door
// is closed.
func (d *door) greet(conn *net.UnixConn) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.guests[conn] = true
	return !d.closed
}

func (d *door) dismiss(conn *net.UnixConn) {
	d.mu.Lock()
	defer d.mu.Unlock()
	delete(d.guests, conn)
	_ = conn.Close()
	<-d.slots
}

// describe is what others need to know to call.
func (d *door) describe() (b [doorBytes]byte) {
	copy(b[:], d.token[:])
	copy(b[tokenBytes:], d.listener.Addr().String()[len("@ringtrain-"):])
	return b
}

func (d *door) close() {
	if d == nil {
		return
	}
	_ = d.listener.Close()
	d.mu.Lock()
	if !d.closed {
		close(d.ended)
	}
	d.closed = true
	for conn := range d.guests {
		_ = conn.Close()
	}
	d.mu.Unlock()
	d.serving.Wait()
}

// callWhile is call as long as a transport is whole: a peer that is stopped does
// not answer.
func callWhile(ctx context.Context, under Under, described []byte, id uint64) (fd, size int, err error) {
	ctx, cancel := context.WithCancel(ctx)
	var watch sync.WaitGroup
	watch.Go(func() {
		select {
		case <-under.Failed():
			cancel()
		case <-ctx.Done():
		}
	})
	defer watch.Wait()
	defer cancel()
	return call(ctx, described, id)
}

// call asks at the door that was described for the descriptor of a number, again
// and again while what hinders it may pass, until ctx ends.
func call(ctx context.Context, described []byte, id uint64) (fd, size int, err error) {
	pause := firstPause
	for {
		fd, size, err = callOnce(ctx, described, id)
		if err == nil || !passes(err) || !idle(ctx.Done(), &pause) {
			return fd, size, err
		}
	}
}

func callOnce(ctx context.Context, described []byte, id uint64) (fd, size int, err error) {
	var dialer net.Dialer
	dialed, err := dialer.DialContext(ctx, "unix", "@ringtrain-"+string(described[tokenBytes:doorBytes]))
	if err != nil {
		return -1, 0, err
	}
	defer dialed.Close()
	conn := dialed.(*net.UnixConn)
	_ = conn.SetDeadline(time.Now().Add(welcomeTime))
	defer context.AfterFunc(ctx, func() { _ = conn.SetDeadline(time.Now()) })()
	if _, err = conn.Write(binary.LittleEndian.AppendUint64(append([]byte(nil), described[:tokenBytes]...), id)); err == nil {
		fd, size, err = receiveDescriptor(conn)
	}
	if err == nil {
		return fd, size, nil
	}
	if uid, e := peerUser(conn); e == nil && os.Geteuid() != 0 && int64(uid) != int64(os.Geteuid()) {
		return -1, 0, fmt.Errorf("user %d does not share memory with user %d: run all workers of a host as one user", uid, os.Geteuid())
	}
	return -1, 0, fmt.Errorf("the memory's descriptor did not come: %w", err)
}

// receiveDescriptor reads the size of a file and the descriptor beside it.
func receiveDescriptor(conn *net.UnixConn) (fd, size int, err error) {
	var word [8]byte
	beside := make([]byte, unix.CmsgSpace(4))
	have, n, flags, _, err := conn.ReadMsgUnix(word[:], beside) // sets close-on-exec
	if err != nil {
		return -1, 0, err
	}
	if flags&unix.MSG_CTRUNC != 0 && n == 0 {
		return -1, 0, unix.EMFILE // there was no room for it here
	}
	messages, err := unix.ParseSocketControlMessage(beside[:n])
	if err != nil {
		return -1, 0, err
	}
	if len(messages) != 1 {
		return -1, 0, errors.New("no descriptor")
	}
	fds, err := unix.ParseUnixRights(&messages[0])
	if err != nil {
		return -1, 0, err
	}
	for _, extra := range fds[min(1, len(fds)):] {
		_ = unix.Close(extra)
	}
	if len(fds) == 0 || have != len(word) {
		return -1, 0, errors.New("no descriptor")
	}
	return fds[0], int(binary.LittleEndian.Uint64(word[:])), nil
}
