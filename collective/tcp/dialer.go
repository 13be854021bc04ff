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

// A dialer tries all addresses of a peer, in rounds. Within a round, each address starts a
// little after the one before, or as soon as that one has failed. Each round waits longer
// for an answer, so that a slow peer answers in the end.
const (
	answerTimeout    = 5 * time.Second        // for an answer, in the first round
	maxAnswerTimeout = 30 * time.Second       // less than limits.total, so that a Listener does not give up first
	attemptDelay     = 100 * time.Millisecond // between the addresses of a round
	minBackoff       = 50 * time.Millisecond  // between rounds
	maxBackoff       = time.Second
	maxDials         = 32 // Links that a process dials at once
)

// wsaConnRefused is ECONNREFUSED on Windows, where package syscall has another value.
const wsaConnRefused = syscall.Errno(10061)

func connectError(want Peer, addr string, err error) error {
	return fmt.Errorf("tcp: cannot connect to %s at %s: %w", want.Name, addr, err)
}

func handshakeError(want Peer, addr string, err error) error {
	return fmt.Errorf("tcp: handshake with %s at %s failed: %w", want.Name, addr, err)
}

// final reports whether dialling again would give the same error: the other side refused,
// does not use our protocol, or nothing listens. A member of a View listens as long as it
// lives, so if nothing listens, it has ended. Everything else may pass: connections that end
// during the handshake, silence, full queues, too few descriptors.
func final(err error) bool {
	return slices.ContainsFunc([]error{
		ErrRefused, ErrNotOurs, syscall.ECONNREFUSED, wsaConnRefused, syscall.ENETUNREACH, syscall.EAFNOSUPPORT, syscall.EACCES, syscall.EPERM, syscall.EINVAL,
	}, func(e error) bool { return errors.Is(err, e) })
}

// A dialer dials the Links of one View. It limits how many it dials at once: otherwise,
// with many peers, every handshake would take as long as all of them together.
type dialer struct {
	id      Identity
	slots   chan struct{}
	timeout time.Duration // for an answer, in the first round
}

func newDialer(id Identity, timeout time.Duration) *dialer {
	return &dialer{id: id, slots: make(chan struct{}, maxDials), timeout: timeout}
}

// dial connects to a peer at any of its addresses, in order of preference. It tries until
// ctx ends or every address has failed for good.
func (d *dialer) dial(ctx context.Context, addrs []netip.AddrPort, want Peer, p Purpose) (*Link, error) {
	if len(addrs) == 0 {
		return nil, errors.New("it announced no address")
	}
	targets := make([]target, len(addrs))
	for i, a := range addrs {
		targets[i].addr = a
	}
	timeout, backoff := d.timeout, minBackoff
	for {
		if l := d.round(ctx, timeout, targets, want, p); l != nil {
			return l, nil
		}
		for _, t := range targets {
			if errors.As(t.err, new(finalRefusal)) {
				return nil, t.err
			}
		}
		if ctx.Err() != nil || !slices.ContainsFunc(targets, target.open) {
			return nil, joinTargets(ctx, targets)
		}
		select {
		case <-time.After(backoff/2 + rand.N(backoff/2)): // random, so that diallers rejected together return one by one
		case <-ctx.Done():
			return nil, joinTargets(ctx, targets)
		}
		timeout, backoff = min(2*timeout, maxAnswerTimeout), min(2*backoff, maxBackoff)
	}
}

// A target is an address of a peer and the result of the last attempt to dial it.
type target struct {
	addr netip.AddrPort
	err  error
}

// open reports whether another attempt could succeed.
func (t target) open() bool { return !final(t.err) }

// joinTargets joins the errors of all addresses and the cause of ctx, if it has ended,
// into one line.
func joinTargets(ctx context.Context, targets []target) error {
	var all error
	for _, t := range targets {
		all = join(all, t.err)
	}
	if cause := context.Cause(ctx); cause != nil && !errors.Is(all, cause) {
		all = join(all, cause)
	}
	return all
}

// join is errors.Join on one line.
func join(all, err error) error {
	switch {
	case all == nil:
		return err
	case err == nil:
		return all
	}
	return fmt.Errorf("%w; %w", all, err)
}

// An attempt is the result of connecting to a target: a connection or an error.
type attempt struct {
	*target
	conn net.Conn
	err  error
}

// round dials every open target once, and stores the errors. It connects to several at the
// same time, but does one handshake after the other.
func (d *dialer) round(ctx context.Context, timeout time.Duration, targets []target, want Peer, p Purpose) *Link {
	select {
	case d.slots <- struct{}{}:
		defer func() { <-d.slots }()
	case <-ctx.Done():
		return nil
	}
	var open []*target
	for i := range targets {
		if targets[i].open() {
			open = append(open, &targets[i])
		}
	}
	limited, cancel := context.WithTimeout(ctx, timeout)
	made := make(chan attempt, len(open))
	begun, ended := 0, 0
	defer func() {
		cancel()
		for ; ended < begun; ended++ {
			if a := <-made; a.conn != nil {
				_ = a.conn.Close()
			}
		}
	}()
	begin := func() {
		t := open[begun]
		begun++
		go func() {
			conn, err := (&net.Dialer{Control: unpaced}).DialContext(limited, "tcp", t.addr.String())
			if err != nil {
				err = connectError(want, t.addr.String(), err)
			}
			made <- attempt{t, conn, err}
		}()
	}
	for ended < len(open) {
		if begun == ended {
			begin()
		}
		var next <-chan time.Time
		if begun < len(open) {
			next = time.After(attemptDelay)
		}
		select {
		case <-next:
			begin()
		case a := <-made:
			ended++
			wait := timeout
			if ended < len(open) {
				wait = wait * 2 / 5 // leave time for the others
			}
			l, err := a.handshake(limited, wait, d.id, want, p)
			if err == nil {
				return l
			}
			if a.target.err == nil || ctx.Err() == nil { // an earlier error says more than the end of ctx
				a.target.err = err
			}
		}
	}
	return nil
}

// handshake does the handshake on a connection, within wait.
func (a attempt) handshake(ctx context.Context, wait time.Duration, id Identity, want Peer, p Purpose) (*Link, error) {
	if a.err != nil {
		return nil, a.err
	}
	ctx, cancel := context.WithTimeout(ctx, wait)
	defer cancel()
	l, err := dialHandshake(ctx, a.conn, id, want, p)
	if err != nil {
		_ = a.conn.Close()
		return nil, handshakeError(want, a.addr.String(), err)
	}
	return l, nil
}
