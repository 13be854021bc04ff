package shm

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"golang.org/x/sys/unix"

	"github.com/ringtrain/ringtrain/collective"
)

// The memory is set up by messages over the transport under it, which knows who
// its peers are. The lowest rank of the host makes the memory and invites the
// others; each fetches the descriptor over a unix socket that only who was
// invited can speak to, and reports; the lowest gives the verdict. Then they find
// out in the same way whether they can read each other's memory. Messages are a
// result and a text, and their kind says which it is.
const (
	kindInvite  collective.Kind = 0xf8 + iota // text: the socket's name
	kindReport                                // text: what went wrong
	kindVerdict                               // text: why not
	kindReading                               // like kindReport: whether it reads the others' memory
	kindReads                                 // like kindVerdict
)

const (
	noteBytes = 512 // of a message: a byte that is 1 if all is well, the door, the text's length and the text
	noteText  = 1 + doorBytes + 2
)

// A setup is one rank's part in sharing memory.
type setup struct {
	ctx     context.Context
	view    collective.View
	under   Under
	options Options
	ranks   []int // of this host
	layout  layout

	fd   int
	door *door           // of the lowest rank, to the memory
	at   [doorBytes]byte // the same, as it was described
	own  *door           // to this rank's Arenas, if there are any
	mark *probe
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
	if why == nil {
		s.at = s.door.describe()
		why = s.sign(mem)
	}
	for _, r := range s.ranks[1:] {
		if err := s.send(r, kindInvite, why); err != nil {
			return mem, why, err
		}
	}
	why, err = s.collect(kindReport, why, func(i, r int) error {
		if mem != nil && !mem.proved(i, s.view.Members[r].Nonce) {
			return errors.New("it does not see the same memory")
		}
		return nil
	})
	if err != nil {
		return mem, why, err
	}
	return mem, why, s.tell(kindVerdict, why)
}

// follow is the part of the others.
func (s *setup) follow() (mem *region, why, err error) {
	first := s.ranks[0]
	why, err = s.recv(first, kindInvite)
	if err != nil {
		return nil, nil, err
	}
	if why == nil {
		mem, why = s.fetch()
	}
	if why == nil {
		why = s.sign(mem)
	}
	if err := s.send(first, kindReport, why); err != nil {
		return mem, why, err
	}
	verdict, err := s.recv(first, kindVerdict)
	return mem, verdict, err
}

// canRead finds out whether every rank can read every other's memory.
func (s *setup) canRead(mem *region) (why, err error) {
	for i, r := range s.ranks {
		if r != s.view.Self && why == nil {
			why = mem.tryRead(i)
		}
	}
	if s.view.Self != s.ranks[0] {
		if err := s.send(s.ranks[0], kindReading, why); err != nil {
			return nil, err
		}
		return s.recv(s.ranks[0], kindReads)
	}
	why, err = s.collect(kindReading, why, func(int, int) error { return nil })
	if err != nil {
		return nil, err
	}
	return why, s.tell(kindReads, why)
}

// collect hears from all others, and returns the first reason why not.
func (s *setup) collect(kind collective.Kind, why error, check func(i, r int) error) (error, error) {
	for i, r := range s.ranks {
		if i == 0 {
			continue
		}
		wrong, err := s.recv(r, kind)
		if err != nil {
			return why, err
		}
		if wrong == nil {
			wrong = check(i, r)
		}
		if wrong != nil && why == nil {
			why = fmt.Errorf("%s: %w", s.view.Name(r), wrong)
		}
	}
	return why, nil
}

// tell tells all others.
func (s *setup) tell(kind collective.Kind, why error) error {
	for _, r := range s.ranks[1:] {
		if err := s.send(r, kind, why); err != nil {
			return err
		}
	}
	return nil
}

// refuses says why this rank shares no memory, or nil.
func (o *Options) refuses() error {
	if o.Off {
		return errOff
	}
	return o.cannot
}

// open makes the memory and begins to give it to who calls.
func (s *setup) open() (*region, error) {
	if err := s.options.refuses(); err != nil {
		return nil, fmt.Errorf("%s: %w", s.view.Name(s.view.Self), err)
	}
	fd, err := create(s.layout.total, s.options.reserve)
	if err != nil {
		return nil, err
	}
	s.fd = fd
	mem, err := attachRegion(fd, s.layout)
	if err != nil {
		return nil, err
	}
	s.door, err = openDoor(func(uint64) (int, int, error) {
		copied, err := unix.FcntlInt(uintptr(fd), unix.F_DUPFD_CLOEXEC, 0)
		return copied, s.layout.total, err
	})
	if err != nil {
		_ = mem.close()
		return nil, err
	}
	return mem, nil
}

// fetch gets the descriptor and maps the memory.
func (s *setup) fetch() (*region, error) {
	if err := s.options.refuses(); err != nil {
		return nil, err
	}
	fd, _, err := callWhile(s.ctx, s.under, s.at[:], 0)
	if err != nil {
		return nil, err
	}
	defer unix.Close(fd)
	return attachRegion(fd, s.layout)
}

// sign leaves a mark of this rank in the memory, and what the others need to
// read its memory in place, or by asking the kernel.
func (s *setup) sign(mem *region) error {
	i := slices.Index(s.ranks, s.view.Self)
	if s.options.Arenas != nil {
		var err error
		if s.own, err = openDoor(s.options.Arenas.duplicate); err != nil {
			return err
		}
		described := s.own.describe()
		copy(mem.bytes(mem.door(i), doorBytes), described[:])
	}
	s.mark = newProbe()
	mem.offer(i, s.mark)
	mem.prove(i, s.view.Members[s.view.Self].Nonce)
	return nil
}

// close frees what is needed no more once all have the memory.
func (s *setup) close() {
	s.door.close()
	if s.fd > 0 {
		_ = unix.Close(s.fd)
	}
}

func (s *setup) header(kind collective.Kind) collective.Header {
	return collective.Header{Job: s.view.Job, Epoch: s.view.Epoch, Call: collective.Call{Kind: kind}, Len: noteBytes}
}

// send tells a rank that all is well, or what is wrong.
func (s *setup) send(to int, kind collective.Kind, wrong error) error {
	var b [noteBytes]byte
	text := ""
	if b[0] = 1; wrong != nil {
		b[0], text = 0, wrong.Error()
	}
	if kind == kindInvite {
		copy(b[1:], s.at[:])
	}
	n := copy(b[noteText:], text)
	b[noteText-2], b[noteText-1] = byte(n), byte(n>>8)
	h := s.header(kind)
	return s.under.Send(s.ctx, to, &h, [][]byte{b[:]})
}

// recv is what a rank told by send.
func (s *setup) recv(from int, kind collective.Kind) (wrong, err error) {
	var b [noteBytes]byte
	h := s.header(kind)
	if err := s.under.Recv(s.ctx, from, &h, [][]byte{b[:]}); err != nil {
		return nil, err
	}
	ok, text := readNote(&b)
	if !ok {
		return errors.New(text), nil
	}
	if kind == kindInvite {
		copy(s.at[:], b[1:])
	}
	return nil, nil
}

func readNote(b *[noteBytes]byte) (ok bool, text string) {
	n := int(b[noteText-2]) | int(b[noteText-1])<<8
	return b[0] == 1, string(b[noteText:][:min(n, noteBytes-noteText)])
}
