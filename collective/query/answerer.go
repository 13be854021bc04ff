package query

import (
	"errors"
	"io"
	"net"
	"net/netip"
	"slices"
	"strconv"
	"sync"
	"syscall"
	"time"
)

// Bounds of an Answerer, which talks to anybody.
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

// An Answerer answers [Reach] on one TCP and one UDP port of the same number. It
// connects only to addresses that have asked it by TCP, and no answer is longer
// than its question.
type Answerer struct {
	tcp  *net.TCPListener
	udp  *net.UDPConn
	told func(line string) // may be nil

	work  sync.WaitGroup
	slots chan struct{}

	mu     sync.Mutex
	tokens []uint64 // of datagrams, the newest last
	conns  map[net.Conn]bool
	closed bool
}

// Answer begins to answer at an ADDRESS:PORT. It calls told, which may be nil and
// must be safe for concurrent use, with a line about each asker. The caller
// closes the Answerer.
func Answer(addr string, told func(line string)) (*Answerer, error) {
	tcp, udp, err := doorways(addr)
	if err != nil {
		return nil, err
	}
	a := &Answerer{tcp: tcp, udp: udp, told: told, slots: make(chan struct{}, mostAskers), conns: map[net.Conn]bool{}}
	a.work.Go(a.acceptAll)
	a.work.Go(a.echoAll)
	return a, nil
}

// Addr is where it listens.
func (a *Answerer) Addr() netip.AddrPort { return a.tcp.Addr().(*net.TCPAddr).AddrPort() }

// Close ends all conversations and waits for their goroutines.
func (a *Answerer) Close() error {
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

func (a *Answerer) acceptAll() {
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

// keep makes Close close a connection; false after Close.
func (a *Answerer) keep(c net.Conn) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.conns[c] = true
	return !a.closed
}

// converse answers one asker.
func (a *Answerer) converse(conn net.Conn) {
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
func (a *Answerer) knock(asker net.Addr, p probe) probe {
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
func (a *Answerer) echoAll() {
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
