package shm

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"slices"

	"golang.org/x/sys/unix"

	"github.com/ringtrain/ringtrain/collective"
)

// The ranks of a host set up the memory by messages over the transport below,
// which has authenticated them:
//
//  1. The lowest rank creates the memory and invites the others. The invitation
//     has the address of an fdServer, without which no process gets the descriptor.
//  2. Each other rank fetches the descriptor, maps the memory, and reports.
//  3. The lowest rank decides whether all share the memory.
//
// Two ranks then find out, by a second report and decision, whether they can read
// each other's memory.
const (
	kindInvite   collective.Kind = 0xf8 + iota // from the lowest rank
	kindReport                                 // to the lowest rank
	kindDecision                               // from the lowest rank
	kindCanRead                                // like kindReport
	kindMayRead                                // like kindDecision
)

// Every message is a note: a byte that is 1 if all is well, the address of the
// fdServer in an invitation, the length of a text, and the text, which says what
// is wrong.
const (
	noteBytes = 512
	noteText  = 1 + addressBytes + 2 // where the text begins
)

// A setup is one rank's part in sharing memory.
type setup struct {
	ctx     context.Context
	view    collective.View
	under   Under
	options Options
	ranks   []int // of this host
	layout  layout

	fd          int
	server      *fdServer          // of the lowest rank, for the memory
	at          [addressBytes]byte // the address of that server
	arenaServer *fdServer          // of this rank, for its Arenas; nil if it has none
	probe       *probe
}

// agree returns the memory, or why there is none. err says that the View has
// broken.
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

// lead is agree for the lowest rank.
func (s *setup) lead() (mem *region, why, err error) {
	mem, why = s.open()
	if why == nil {
		s.at = s.server.address()
		mem.choose(first(&s.options.Calibration, len(s.ranks), s.searches()))
		why = s.sign(mem)
	}
	for _, r := range s.ranks[1:] {
		if err := s.send(r, kindInvite, why); err != nil {
			return mem, why, err
		}
	}
	why, err = s.recvAll(kindReport, why, func(i, r int) error {
		if mem != nil && !mem.proved(i, s.view.Members[r].Nonce) {
			return errors.New("it has mapped other memory")
		}
		return nil
	})
	if err != nil {
		return mem, why, err
	}
	return mem, why, s.sendAll(kindDecision, why)
}

// searches reports whether trial calls are worth their time: all ranks reduce in the
// memory, and each can have a core. If ranks share cores, the times are those of the
// kernel's scheduler: 4 ranks on 2 cores chose differently from run to run.
func (s *setup) searches() bool {
	return len(s.ranks) == s.view.Size() && len(s.ranks) <= runtime.NumCPU()
}

// follow is agree for the other ranks.
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
	why, err = s.recv(first, kindDecision)
	return mem, why, err
}

// canRead returns nil if every rank can read every other rank's memory, or why
// not. All ranks get the same answer.
func (s *setup) canRead(mem *region) (why, err error) {
	for i, r := range s.ranks {
		if r != s.view.Self && why == nil {
			why = mem.tryRead(i)
		}
	}
	if s.view.Self != s.ranks[0] {
		if err := s.send(s.ranks[0], kindCanRead, why); err != nil {
			return nil, err
		}
		return s.recv(s.ranks[0], kindMayRead)
	}
	why, err = s.recvAll(kindCanRead, why, func(int, int) error { return nil })
	if err != nil {
		return nil, err
	}
	return why, s.sendAll(kindMayRead, why)
}

// recvAll receives a note from each other rank, and checks the ranks that report
// no problem. It returns why, or else the first problem.
func (s *setup) recvAll(kind collective.Kind, why error, check func(i, r int) error) (error, error) {
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

// sendAll sends a note to each other rank.
func (s *setup) sendAll(kind collective.Kind, why error) error {
	for _, r := range s.ranks[1:] {
		if err := s.send(r, kind, why); err != nil {
			return err
		}
	}
	return nil
}

// refuses returns why this rank does not share memory, or nil.
func (o *Options) refuses() error {
	if o.Off {
		return errOff
	}
	return o.cannot
}

// open creates and maps the memory, and starts the server that gives it to the
// other ranks.
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
	s.server, err = startServer(func(uint64) (int, int, error) {
		copied, err := unix.FcntlInt(uintptr(fd), unix.F_DUPFD_CLOEXEC, 0)
		return copied, s.layout.total, err
	})
	if err != nil {
		_ = mem.close()
		return nil, err
	}
	return mem, nil
}

// fetch fetches the descriptor of the memory and maps it.
func (s *setup) fetch() (*region, error) {
	if err := s.options.refuses(); err != nil {
		return nil, err
	}
	fd, _, err := fetchWhileWhole(s.ctx, s.under, s.at[:], 0)
	if err != nil {
		return nil, err
	}
	defer unix.Close(fd)
	return attachRegion(fd, s.layout)
}

// sign writes into the memory what the others need to know about this rank: the
// address of the server for its Arenas, its probe, and its nonce, which proves
// that it has mapped the memory.
func (s *setup) sign(mem *region) error {
	i := slices.Index(s.ranks, s.view.Self)
	if s.options.Arenas != nil {
		var err error
		if s.arenaServer, err = startServer(s.options.Arenas.duplicate); err != nil {
			return err
		}
		at := s.arenaServer.address()
		copy(mem.bytes(mem.serverAddress(i), addressBytes), at[:])
	}
	s.probe = newProbe()
	mem.offer(i, s.probe)
	mem.prove(i, s.view.Members[s.view.Self].Nonce)
	return nil
}

// close frees what is no longer needed when all ranks have mapped the memory.
func (s *setup) close() {
	s.server.close()
	if s.fd > 0 {
		_ = unix.Close(s.fd)
	}
}

func (s *setup) header(kind collective.Kind) collective.Header {
	return collective.Header{Job: s.view.Job, Epoch: s.view.Epoch, Call: collective.Call{Kind: kind}, Len: noteBytes}
}

// send sends a note: what is wrong, or nil.
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

// recv receives what a rank has passed to send.
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
