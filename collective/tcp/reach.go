package tcp

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"net/netip"
	"slices"
	"syscall"
	"time"
)

// How a peer's addresses are tried: each a little after the one before, or as soon
// as that has failed. An answer is awaited for a while, and longer in each round:
// a peer that is only slow answers in the end.
const (
	headStart   = 100 * time.Millisecond
	maxPatience = 30 * time.Second // less than a Listener's visit, which must not end on a dialler that still waits
	firstPause  = 50 * time.Millisecond
	maxPause    = time.Second
)

// wsaRefused is ECONNREFUSED on Windows, where package syscall knows another.
const wsaRefused = syscall.Errno(10061)

// final reports whether an error will be the same next time: the other side has
// said no, it is not ours, or there is nobody. A member of a View listens for as
// long as it lives, so a port without a listener is a member that is gone.
// Everything else may pass: connections that end in the middle, silence, queues
// that are full, a lack of descriptors.
func final(err error) bool {
	return slices.ContainsFunc([]error{
		ErrRefused, ErrNotOurs, syscall.ECONNREFUSED, wsaRefused, syscall.ENETUNREACH, syscall.EAFNOSUPPORT, syscall.EACCES, syscall.EPERM, syscall.EINVAL,
	}, func(e error) bool { return errors.Is(err, e) })
}

// A caller dials the Links of one View, a few at a time: who connects to many
// peers at once has each wait for an answer as long as for all of them.
type caller struct {
	id       Identity
	turns    chan struct{}
	patience time.Duration // for an answer, in the first round
}

// maxDials is how many Links a process dials at a time.
const maxDials = 32

func newCaller(id Identity, patience time.Duration) *caller {
	return &caller{id: id, turns: make(chan struct{}, maxDials), patience: patience}
}

// dial connects to a peer under any of its addresses, best first, until ctx ends
// or waiting cannot help at any of them.
func (c *caller) dial(ctx context.Context, addrs []netip.AddrPort, want Peer, p Purpose) (*Link, error) {
	if len(addrs) == 0 {
		return nil, errors.New("it has told no address")
	}
	tries := make([]try, len(addrs))
	for i, a := range addrs {
		tries[i].addr = a
	}
	patience, pause := c.patience, firstPause
	for {
		if l := c.round(ctx, patience, tries, want, p); l != nil {
			return l, nil
		}
		for _, t := range tries {
			if errors.As(t.err, new(verdict)) {
				return nil, t.err
			}
		}
		if ctx.Err() != nil || !slices.ContainsFunc(tries, try.again) {
			return nil, outcome(ctx, tries)
		}
		select {
		case <-time.After(pause/2 + rand.N(pause/2)): // whoever was hung up on together comes back one by one
		case <-ctx.Done():
			return nil, outcome(ctx, tries)
		}
		patience, pause = min(2*patience, maxPatience), min(2*pause, maxPause)
	}
}

// A try is an address of a peer and what came of dialling it last.
type try struct {
	addr netip.AddrPort
	err  error
}

// again reports whether the address is worth another try.
func (t try) again() bool { return !final(t.err) }

// outcome is the errors of all addresses, and the reason of ctx if it has ended,
// in one line.
func outcome(ctx context.Context, tries []try) error {
	var all error
	for _, t := range tries {
		all = also(all, t.err)
	}
	if cause := context.Cause(ctx); cause != nil && !errors.Is(all, cause) {
		all = also(all, cause)
	}
	return all
}

func also(all, err error) error {
	switch {
	case all == nil:
		return err
	case err == nil:
		return all
	}
	return fmt.Errorf("%w; %w", all, err)
}

// A connecting is a connection in the making, or what became of it.
type connecting struct {
	*try
	conn  net.Conn
	fault error
}

// round tries once every address that is worth it, and notes what came of it.
// Connections are made side by side, but one hello is said at a time.
func (c *caller) round(ctx context.Context, patience time.Duration, tries []try, want Peer, p Purpose) *Link {
	select {
	case c.turns <- struct{}{}:
		defer func() { <-c.turns }()
	case <-ctx.Done():
		return nil
	}
	var worth []*try
	for i := range tries {
		if tries[i].again() {
			worth = append(worth, &tries[i])
		}
	}
	limited, cancel := context.WithTimeout(ctx, patience)
	made := make(chan connecting, len(worth))
	begun, ended := 0, 0
	defer func() {
		cancel()
		for ; ended < begun; ended++ {
			if m := <-made; m.conn != nil {
				_ = m.conn.Close()
			}
		}
	}()
	begin := func() {
		t := worth[begun]
		begun++
		go func() {
			conn, fault := (&net.Dialer{}).DialContext(limited, "tcp", t.addr.String())
			if fault != nil {
				fault = fmt.Errorf("tcp: connecting to %s at %s: %w", want.Name, t.addr, fault)
			}
			made <- connecting{t, conn, fault}
		}()
	}
	for ended < len(worth) {
		if begun == ended {
			begin()
		}
		var next <-chan time.Time
		if begun < len(worth) {
			next = time.After(headStart)
		}
		select {
		case <-next:
			begin()
		case m := <-made:
			ended++
			wait := patience
			if ended < len(worth) {
				wait = wait * 2 / 5 // others are left
			}
			l, err := m.greet(limited, wait, c.id, want, p)
			if err == nil {
				return l
			}
			if m.err == nil || ctx.Err() == nil { // the end of ctx says less
				m.err = err
			}
		}
	}
	return nil
}

// greet shakes hands over a connection that was made.
func (m connecting) greet(ctx context.Context, wait time.Duration, id Identity, want Peer, p Purpose) (*Link, error) {
	if m.fault != nil {
		return nil, m.fault
	}
	ctx, cancel := context.WithTimeout(ctx, wait)
	defer cancel()
	l, err := meet(ctx, m.conn, id, want, p)
	if err != nil {
		_ = m.conn.Close()
		return nil, fmt.Errorf("tcp: greeting %s at %s: %w", want.Name, m.addr, err)
	}
	return l, nil
}
