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
	"sync"
	"time"

	"golang.org/x/sys/unix"
)

// welcomeTime is for one who calls at a door.
const welcomeTime = 5 * time.Second

// A door is a unix socket at which other processes get the descriptors of
// memory, if they know the token.
type door struct {
	listener *net.UnixListener
	token    [tokenBytes]byte
	serving  sync.WaitGroup

	mu     sync.Mutex
	closed bool
	guests map[*net.UnixConn]bool
}

// openDoor begins to give what duplicate makes to who asks for it by number.
func openDoor(duplicate func(id uint64) (fd, size int, err error)) (*door, error) {
	var name [nameBytes]byte
	_, _ = rand.Read(name[:])
	d := &door{guests: map[*net.UnixConn]bool{}}
	_, _ = rand.Read(d.token[:])
	var err error
	d.listener, err = net.ListenUnix("unix", &net.UnixAddr{Name: "@ringtrain-" + hex.EncodeToString(name[:]), Net: "unix"})
	if err != nil {
		return nil, err
	}
	d.serving.Go(func() { d.serve(duplicate) })
	return d, nil
}

func (d *door) serve(duplicate func(id uint64) (fd, size int, err error)) {
	for {
		conn, err := d.listener.AcceptUnix()
		if err != nil {
			return // closed
		}
		if !d.greet(conn) {
			_ = conn.Close()
			return
		}
		d.serving.Go(func() {
			defer d.dismiss(conn)
			_ = conn.SetDeadline(time.Now().Add(welcomeTime))
			var asked [tokenBytes + 8]byte
			if _, err := io.ReadFull(conn, asked[:]); err != nil || subtle.ConstantTimeCompare(asked[:tokenBytes], d.token[:]) != 1 {
				return
			}
			fd, size, err := duplicate(binary.LittleEndian.Uint64(asked[tokenBytes:]))
			if err != nil {
				return
			}
			defer unix.Close(fd)
			var answer [8]byte
			binary.LittleEndian.PutUint64(answer[:], uint64(size))
			_, _, _ = conn.WriteMsgUnix(answer[:], unix.UnixRights(fd), nil)
		})
	}
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
	d.closed = true
	for conn := range d.guests {
		_ = conn.Close()
	}
	d.mu.Unlock()
	d.serving.Wait()
}

// call asks at the door that was described for the descriptor of a number, until
// ctx ends.
func call(ctx context.Context, described []byte, id uint64) (fd, size int, err error) {
	var dialer net.Dialer
	conn, err := dialer.DialContext(ctx, "unix", "@ringtrain-"+string(described[tokenBytes:doorBytes]))
	if err != nil {
		return -1, 0, err
	}
	defer conn.Close()
	_ = conn.SetDeadline(time.Now().Add(welcomeTime))
	defer context.AfterFunc(ctx, func() { _ = conn.SetDeadline(time.Now()) })()
	if _, err := conn.Write(binary.LittleEndian.AppendUint64(append([]byte(nil), described[:tokenBytes]...), id)); err != nil {
		return -1, 0, err
	}
	fd, size, err = receiveDescriptor(conn.(*net.UnixConn))
	if err != nil {
		return -1, 0, fmt.Errorf("the memory's descriptor did not come: %w", err)
	}
	return fd, size, nil
}

// receiveDescriptor reads the size of a file and the descriptor beside it.
func receiveDescriptor(conn *net.UnixConn) (fd, size int, err error) {
	var word [8]byte
	beside := make([]byte, unix.CmsgSpace(4))
	have, n, _, _, err := conn.ReadMsgUnix(word[:], beside) // sets close-on-exec
	if err != nil {
		return -1, 0, err
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
