package shm

import (
	"crypto/rand"
	"crypto/subtle"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"io"
	"net"
	"os"
	"sync"
	"time"

	"golang.org/x/sys/unix"
)

const (
	serveTimeout = 5 * time.Second // for one client
	mostClients  = 64              // at a time; the kernel queues a few more

	socketPrefix = "@ringtrain-" // of an abstract socket, which has no file
)

// An fdServer gives the descriptors of shared memory to other processes of the
// same user that know its token, over a unix socket.
type fdServer struct {
	listener  *net.UnixListener
	token     [tokenBytes]byte
	duplicate func(id uint64) (fd, size int, err error)
	timeout   time.Duration // for one client
	slots     chan struct{} // holds one element per client
	ended     chan struct{}
	serving   sync.WaitGroup

	mu      sync.Mutex
	closed  bool
	clients map[*net.UnixConn]bool
}

// startServer starts a server. To a client that asks for a number, it gives the
// descriptor that duplicate returns for the number.
func startServer(duplicate func(id uint64) (fd, size int, err error)) (*fdServer, error) {
	var name [nameBytes]byte
	_, _ = rand.Read(name[:])
	listener, err := net.ListenUnix("unix", &net.UnixAddr{Name: socketPrefix + hex.EncodeToString(name[:]), Net: "unix"})
	if err != nil {
		return nil, err
	}
	d := newServer(listener, duplicate)
	d.serving.Go(func() { d.serve(listener.AcceptUnix) })
	return d, nil
}

// newServer returns a server that does not accept clients yet.
func newServer(listener *net.UnixListener, duplicate func(id uint64) (fd, size int, err error)) *fdServer {
	d := &fdServer{
		listener: listener, duplicate: duplicate, timeout: serveTimeout,
		slots: make(chan struct{}, mostClients), ended: make(chan struct{}), clients: map[*net.UnixConn]bool{},
	}
	_, _ = rand.Read(d.token[:])
	return d
}

// serve accepts clients until the server is closed. It retries after every
// failure to accept, because most come from a lack of descriptors, which passes.
func (d *fdServer) serve(accept func() (*net.UnixConn, error)) {
	pause := leastBackoff
	for {
		conn, err := accept()
		if err != nil {
			if errors.Is(err, net.ErrClosed) || !backOff(d.ended, &pause) {
				return
			}
			continue
		}
		pause = leastBackoff
		if !trusted(conn) {
			_ = conn.Close()
			continue
		}
		select {
		case d.slots <- struct{}{}:
		case <-d.ended:
		}
		if !d.register(conn) {
			_ = conn.Close()
			return
		}
		d.serving.Go(func() {
			defer d.unregister(conn)
			d.handle(conn)
		})
	}
}

// trusted reports whether a client's process may use the server at all: it
// belongs to this user or to root, which can read this process's memory anyway.
func trusted(conn *net.UnixConn) bool {
	uid, err := peerUser(conn)
	return err == nil && trusts(uid, os.Geteuid())
}

func trusts(uid uint32, own int) bool { return uid == 0 || int64(uid) == int64(own) }

// peerUser returns the user that the process at the other end had when it connected
// or began to listen.
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

// handle gives a client the descriptor that it asks for.
func (d *fdServer) handle(conn *net.UnixConn) {
	until := time.Now().Add(d.timeout)
	_ = conn.SetDeadline(until)
	var request [tokenBytes + 8]byte
	if _, err := io.ReadFull(conn, request[:]); err != nil || subtle.ConstantTimeCompare(request[:tokenBytes], d.token[:]) != 1 {
		return
	}
	id := binary.LittleEndian.Uint64(request[tokenBytes:])
	pause := leastBackoff
	fd, size, err := d.duplicate(id)
	for err != nil && transient(err) && time.Now().Before(until) && backOff(d.ended, &pause) {
		fd, size, err = d.duplicate(id)
	}
	if err != nil {
		return
	}
	defer unix.Close(fd)
	var answer [8]byte
	binary.LittleEndian.PutUint64(answer[:], uint64(size))
	_, _, _ = conn.WriteMsgUnix(answer[:], unix.UnixRights(fd), nil)
}

// register records a client, so that close can disconnect it. It reports false if
// the server is closed.
func (d *fdServer) register(conn *net.UnixConn) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.clients[conn] = true
	return !d.closed
}

func (d *fdServer) unregister(conn *net.UnixConn) {
	d.mu.Lock()
	defer d.mu.Unlock()
	delete(d.clients, conn)
	_ = conn.Close()
	<-d.slots
}

// address returns what a client needs: the token and the name of the socket.
func (d *fdServer) address() (b [addressBytes]byte) {
	copy(b[:], d.token[:])
	copy(b[tokenBytes:], d.listener.Addr().String()[len(socketPrefix):])
	return b
}

func (d *fdServer) close() {
	if d == nil {
		return
	}
	_ = d.listener.Close()
	d.mu.Lock()
	if !d.closed {
		close(d.ended)
	}
	d.closed = true
	for conn := range d.clients {
		_ = conn.Close()
	}
	d.mu.Unlock()
	d.serving.Wait()
}
