package shm

import (
	"context"
	"crypto/rand"
	"crypto/subtle"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"net"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"github.com/ringtrain/ringtrain/collective"
)

// The memory is set up by messages over the transport under it, which knows who
// its peers are. The lowest rank of the host makes the memory and invites the
// others; each fetches the descriptor over a unix socket that only who was
// invited can speak to, and reports; the lowest gives the verdict. Messages are
// a result and a text, and their kind says which of the three it is.
const (
	kindInvite  collective.Kind = 0xf8 + iota // text: the socket's name
	kindReport                                // text: what went wrong
	kindVerdict                               // text: why not
)

const (
	tokenBytes  = 32
	noteBytes   = 512 // of a message: a byte that is 1 if all is well, the token, the text's length and the text
	noteText    = 1 + tokenBytes + 2
	welcomeTime = 5 * time.Second // for one who calls at the socket
)

// A setup is one rank's part in sharing memory.
type setup struct {
	ctx     context.Context
	view    collective.View
	under   Under
	options Options
	ranks   []int // of this host
	layout  layout

	fd       int
	listener *net.UnixListener
	serving  sync.WaitGroup
	token    [tokenBytes]byte
}

// agree is the memory, or why there is none; err is that of the View.
func (s *setup) agree() (mem *region, why, err error) {
	if s.view.Self == s.ranks[0] {
		mem, why, err = s.lead()
	} else {
		mem, why, err = s.follow()
	}
	if mem != nil && (why != nil || err != nil) {
		_ = mem.close()
		mem = nil
	}
	return mem, why, err
}

// lead is the lowest rank's part.
func (s *setup) lead() (mem *region, why, err error) {
	mem, why = s.open()
	name := ""
	if why == nil {
		name = s.listener.Addr().String()
	}
	for _, r := range s.ranks[1:] {
		if err := s.send(r, kindInvite, why, name); err != nil {
			return mem, why, err
		}
	}
	for i, r := range s.ranks {
		if i == 0 {
			continue
		}
		wrong, _, err := s.recv(r, kindReport)
		if err != nil {
			return mem, why, err
		}
		if wrong == nil && why == nil && !mem.proved(i, s.view.Members[r].Nonce) {
			wrong = errors.New("it does not see the same memory")
		}
		if wrong != nil && why == nil {
			why = fmt.Errorf("%s: %w", s.view.Name(r), wrong)
		}
	}
	for _, r := range s.ranks[1:] {
		if err := s.send(r, kindVerdict, why, ""); err != nil {
			return mem, why, err
		}
	}
	return mem, why, nil
}

// follow is the part of the others.
func (s *setup) follow() (mem *region, why, err error) {
	first := s.ranks[0]
	why, name, err := s.recv(first, kindInvite)
	if err != nil {
		return nil, nil, err
	}
	if why == nil {
		mem, why = s.fetch(name)
	}
	if err := s.send(first, kindReport, why, ""); err != nil {
		return mem, why, err
	}
	verdict, _, err := s.recv(first, kindVerdict)
	return mem, verdict, err
}

// open makes the memory and begins to give it to who calls.
func (s *setup) open() (*region, error) {
	if s.options.Off {
		return nil, fmt.Errorf("%s: %w", s.view.Name(s.view.Self), errOff)
	}
	fd, err := create(s.layout, s.options.reserve)
	if err != nil {
		return nil, err
	}
	s.fd = fd
	var name [16]byte
	_, _ = rand.Read(name[:])
	_, _ = rand.Read(s.token[:])
	mem, err := attach(fd, s.layout)
	if err == nil {
		s.listener, err = net.ListenUnix("unix", &net.UnixAddr{Name: "@ringtrain-" + hex.EncodeToString(name[:]), Net: "unix"})
	}
	if err != nil {
		if mem != nil {
			_ = mem.close()
		}
		_ = unix.Close(fd)
		s.fd = 0
		return nil, err
	}
	s.serving.Go(s.serve)
	return mem, nil
}

// serve gives the descriptor to everybody who knows the token.
func (s *setup) serve() {
	for {
		conn, err := s.listener.AcceptUnix()
		if err != nil {
			return // closed
		}
		s.serving.Go(func() {
			defer conn.Close()
			_ = conn.SetDeadline(time.Now().Add(welcomeTime))
			var token [tokenBytes]byte
			if _, err := io.ReadFull(conn, token[:]); err == nil && subtle.ConstantTimeCompare(token[:], s.token[:]) == 1 {
				_, _, _ = conn.WriteMsgUnix([]byte{1}, unix.UnixRights(s.fd), nil)
			}
		})
	}
}

// fetch gets the descriptor, maps the memory and leaves a mark there.
func (s *setup) fetch(name string) (*region, error) {
	if s.options.Off {
		return nil, errOff
	}
	var d net.Dialer
	conn, err := d.DialContext(s.ctx, "unix", name)
	if err != nil {
		return nil, err
	}
	defer conn.Close()
	_ = conn.SetDeadline(time.Now().Add(welcomeTime))
	if _, err := conn.Write(s.token[:]); err != nil {
		return nil, err
	}
	fd, err := receiveDescriptor(conn.(*net.UnixConn))
	if err != nil {
		return nil, fmt.Errorf("the memory's descriptor did not come: %w", err)
	}
	defer unix.Close(fd)
	mem, err := attach(fd, s.layout)
	if err != nil {
		return nil, err
	}
	for i, r := range s.ranks {
		if r == s.view.Self {
			mem.prove(i, s.view.Members[r].Nonce)
		}
	}
	return mem, nil
}

// receiveDescriptor reads one byte and the descriptor beside it.
func receiveDescriptor(conn *net.UnixConn) (int, error) {
	var one [1]byte
	beside := make([]byte, unix.CmsgSpace(4))
	_, n, _, _, err := conn.ReadMsgUnix(one[:], beside) // sets close-on-exec
	if err != nil {
		return -1, err
	}
	messages, err := unix.ParseSocketControlMessage(beside[:n])
	if err != nil {
		return -1, err
	}
	if len(messages) != 1 {
		return -1, errors.New("no descriptor")
	}
	fds, err := unix.ParseUnixRights(&messages[0])
	if err != nil {
		return -1, err
	}
	for _, extra := range fds[min(1, len(fds)):] {
		_ = unix.Close(extra)
	}
	if len(fds) == 0 {
		return -1, errors.New("no descriptor")
	}
	return fds[0], nil
}

// close frees what is needed no more once all have the memory.
func (s *setup) close() {
	if s.listener != nil {
		_ = s.listener.Close()
		s.serving.Wait()
	}
	if s.fd > 0 {
		_ = unix.Close(s.fd)
	}
}

func (s *setup) header(kind collective.Kind) collective.Header {
	return collective.Header{Job: s.view.Job, Epoch: s.view.Epoch, Call: collective.Call{Kind: kind}, Len: noteBytes}
}

// send tells a rank that all is well, with a text, or what is wrong.
func (s *setup) send(to int, kind collective.Kind, wrong error, text string) error {
	var b [noteBytes]byte
	if b[0] = 1; wrong != nil {
		b[0], text = 0, wrong.Error()
	}
	if kind == kindInvite {
		copy(b[1:], s.token[:])
	}
	n := copy(b[noteText:], text)
	b[noteText-2], b[noteText-1] = byte(n), byte(n>>8)
	h := s.header(kind)
	return s.under.Send(s.ctx, to, &h, [][]byte{b[:]})
}

// recv is what a rank told by send.
func (s *setup) recv(from int, kind collective.Kind) (wrong error, text string, err error) {
	var b [noteBytes]byte
	h := s.header(kind)
	if err := s.under.Recv(s.ctx, from, &h, [][]byte{b[:]}); err != nil {
		return nil, "", err
	}
	ok, text := readNote(&b)
	if !ok {
		return errors.New(text), "", nil
	}
	if kind == kindInvite {
		copy(s.token[:], b[1:])
	}
	return nil, text, nil
}

func readNote(b *[noteBytes]byte) (ok bool, text string) {
	n := int(b[noteText-2]) | int(b[noteText-1])<<8
	return b[0] == 1, string(b[noteText:][:min(n, noteBytes-noteText)])
}
