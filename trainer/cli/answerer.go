package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"slices"
	"strconv"
	"sync"
	"syscall"
	"time"
)

// Bounds of an answerer, which talks to whoever comes.
const (
	mostAskers  = 64               // at one time
	mostProbes  = 64               // of one asker
	mostBacks   = 4                // of one asker
	askerTime   = 15 * time.Second // that one may take
	knockTime   = 2 * time.Second
	knocks      = 3   // datagrams
	tokensKept  = 256 // of datagrams that came
	gonePatient = 10 * time.Millisecond
)

// An answerer answers the questions of doctor on one TCP and one UDP port. It
// connects only to the address of who has asked it by TCP, and never says more
// than it was asked.
type answerer struct {
	tcp  *net.TCPListener
	udp  *net.UDPConn
	told func(line string) // about who has asked; may be nil

	work  sync.WaitGroup
	slots chan struct{}

	mu     sync.Mutex
	tokens []uint64 // of datagrams, the newest last
	conns  map[net.Conn]bool
	closed bool
}

// answer begins to answer at an address, by TCP and UDP at the same port.
func answer(addr string, told func(string)) (*answerer, error) {
	tcp, udp, err := doorways(addr)
	if err != nil {
		return nil, err
	}
	a := &answerer{tcp: tcp, udp: udp, told: told, slots: make(chan struct{}, mostAskers), conns: map[net.Conn]bool{}}
	a.work.Go(a.acceptAll)
	a.work.Go(a.echoAll)
	return a, nil
}

// addr is where it listens.
func (a *answerer) addr() netip.AddrPort { return a.tcp.Addr().(*net.TCPAddr).AddrPort() }

// close ends all conversations.
func (a *answerer) close() error {
	a.mu.Lock()
	a.closed = true
	for c := range a.conns {
		_ = c.Close()
	}
	a.mu.Unlock()
	err := errors.Join(a.tcp.Close(), a.udp.Close())
	a.work.Wait()
	return err
}

func (a *answerer) acceptAll() {
	for {
		a.slots <- struct{}{} // whoever comes while all are taken waits in the kernel's queue
		conn, err := a.tcp.Accept()
		if err != nil {
			<-a.slots
			if errors.Is(err, net.ErrClosed) {
				return
			}
			<-time.After(gonePatient) // out of descriptors, or the asker was gone
			continue
		}
		a.work.Go(func() {
			defer func() { <-a.slots }()
			if a.keep(conn) {
				a.converse(conn)
			}
			a.mu.Lock()
			defer a.mu.Unlock()
			delete(a.conns, conn)
			_ = conn.Close()
		})
	}
}

// keep makes close close a connection; false after close.
func (a *answerer) keep(c net.Conn) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.conns[c] = true
	return !a.closed
}

// converse answers one asker.
func (a *answerer) converse(conn net.Conn) {
	_ = conn.SetDeadline(time.Now().Add(askerTime))
	backs := 0
	for range mostProbes {
		p, err := readProbe(conn)
		if err != nil {
			return
		}
		reply := p.pong(time.Now())
		switch {
		case p.kind == probeBack && backs < mostBacks:
			backs++
			reply = a.knock(conn.RemoteAddr(), p)
			if a.told != nil {
				a.told("answered " + conn.RemoteAddr().String())
			}
		case p.kind != probePing:
			return
		}
		if _, err := conn.Write(reply.encode()); err != nil {
			return
		}
	}
}

// knock talks to the asker's own ports, and says what became of it.
func (a *answerer) knock(asker net.Addr, p probe) probe {
	told := probe{kind: probeTold, token: p.token}
	hello := probe{kind: probeKnock, token: p.token}.encode()
	host, _, _ := net.SplitHostPort(asker.String()) // TCP addresses have both
	a.mu.Lock()
	if slices.Contains(a.tokens, p.token) {
		told.flags |= heardUDP
	}
	a.mu.Unlock()
	if udp, err := net.Dial("udp", net.JoinHostPort(host, strconv.Itoa(int(p.udp)))); err == nil {
		for range knocks {
			_, _ = udp.Write(hello) // the asker sees what comes
		}
		_ = udp.Close()
	}
	tcp, err := net.DialTimeout("tcp", net.JoinHostPort(host, strconv.Itoa(int(p.tcp))), knockTime)
	switch {
	case err == nil:
		told.flags |= dialled
		_ = tcp.SetDeadline(time.Now().Add(knockTime))
		_, _ = tcp.Write(hello)
		_ = tcp.Close()
	case errors.Is(err, syscall.ECONNREFUSED):
		told.flags |= refusedTCP
	}
	return told
}

// echoAll answers datagrams.
func (a *answerer) echoAll() {
	var b [probeSize + 1]byte
	for {
		n, from, err := a.udp.ReadFromUDPAddrPort(b[:])
		if errors.Is(err, net.ErrClosed) {
			return
		}
		p, bad := decodeProbe(b[:n])
		if err != nil || bad != nil || p.kind != probePing {
			continue
		}
		a.mu.Lock()
		if !slices.Contains(a.tokens, p.token) {
			a.tokens = append(a.tokens, p.token)
			a.tokens = a.tokens[max(0, len(a.tokens)-tokensKept):]
		}
		a.mu.Unlock()
		_, _ = a.udp.WriteToUDPAddrPort(p.pong(time.Now()).encode(), from) // who gets none asks again
	}
}

func readProbe(r io.Reader) (probe, error) {
	var b [probeSize]byte
	if _, err := io.ReadFull(r, b[:]); err != nil {
		return probe{}, err
	}
	return decodeProbe(b[:])
}

// answerUntil is doctor's other half: it answers until ctx ends.
func (a *app) answerUntil(ctx context.Context, addr string) error {
	ans, err := answer(addr, func(line string) { fmt.Fprintln(a.stderr, line) })
	if err != nil {
		return usagef("--listen %s: %w", addr, err)
	}
	where := ans.addr().String()
	if ans.addr().Addr().IsUnspecified() {
		where = fmt.Sprintf("ADDRESS:%d, with an address of this machine", ans.addr().Port())
	}
	fmt.Fprintf(a.stderr, "listening at %v; on the other machines: ringtrain doctor %s\n", ans.addr(), where)
	<-ctx.Done()
	return ans.close()
}
