package shm

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"net"
	"os"
	"sync"
	"time"

	"golang.org/x/sys/unix"
)

const (
	leastBackoff = time.Millisecond // before the first retry; then twice as long each time
	mostBackoff  = 100 * time.Millisecond
)

// fetchWhileWhole is fetchDescriptor, but also ends when a transport breaks,
// because a stopped peer does not answer.
func fetchWhileWhole(ctx context.Context, under Under, address []byte, id uint64) (fd, size int, err error) {
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
	return fetchDescriptor(ctx, address, id)
}

// fetchDescriptor asks an fdServer for the descriptor of a number. It retries
// after transient errors until ctx ends.
func fetchDescriptor(ctx context.Context, address []byte, id uint64) (fd, size int, err error) {
	pause := leastBackoff
	for {
		fd, size, err = fetchOnce(ctx, address, id)
		if err == nil || !transient(err) || !backOff(ctx.Done(), &pause) {
			return fd, size, err
		}
	}
}

func fetchOnce(ctx context.Context, address []byte, id uint64) (fd, size int, err error) {
	var dialer net.Dialer
	dialed, err := dialer.DialContext(ctx, "unix", socketPrefix+string(address[tokenBytes:addressBytes]))
	if err != nil {
		return -1, 0, err
	}
	defer dialed.Close()
	conn := dialed.(*net.UnixConn)
	_ = conn.SetDeadline(time.Now().Add(serveTimeout))
	defer context.AfterFunc(ctx, func() { _ = conn.SetDeadline(time.Now()) })()
	if _, err = conn.Write(binary.LittleEndian.AppendUint64(append([]byte(nil), address[:tokenBytes]...), id)); err == nil {
		fd, size, err = receiveDescriptor(conn)
	}
	if err == nil {
		return fd, size, nil
	}
	if uid, e := peerUser(conn); e == nil && os.Geteuid() != 0 && int64(uid) != int64(os.Geteuid()) {
		return -1, 0, fmt.Errorf("user %d does not share memory with user %d: run all workers of a host as one user", uid, os.Geteuid())
	}
	return -1, 0, fmt.Errorf("no descriptor of the shared memory received: %w", err)
}

// receiveDescriptor receives the size of a file and its descriptor.
func receiveDescriptor(conn *net.UnixConn) (fd, size int, err error) {
	var word [8]byte
	control := make([]byte, unix.CmsgSpace(4))
	have, n, flags, _, err := conn.ReadMsgUnix(word[:], control) // sets close-on-exec
	if err != nil {
		return -1, 0, err
	}
	if flags&unix.MSG_CTRUNC != 0 && n == 0 {
		return -1, 0, unix.EMFILE // this process cannot open another descriptor
	}
	messages, err := unix.ParseSocketControlMessage(control[:n])
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

// backOff waits for a while, each time longer. It reports false if end came
// first.
func backOff(end <-chan struct{}, pause *time.Duration) bool {
	timer := time.NewTimer(*pause)
	defer timer.Stop()
	*pause = min(2**pause, mostBackoff)
	select {
	case <-timer.C:
		return true
	case <-end:
		return false
	}
}

// transient reports whether an error may pass: a lack of descriptors or memory,
// or a server with too many clients.
func transient(err error) bool {
	for _, e := range []error{unix.EAGAIN, unix.EMFILE, unix.ENFILE, unix.ENOBUFS, unix.ENOMEM, unix.ECONNABORTED, os.ErrDeadlineExceeded, context.DeadlineExceeded} {
		if errors.Is(err, e) {
			return true
		}
	}
	return false
}
