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

// Limits of an Answerer, which talks to anybody.
const (
	maxAskers   = 64               // connected at the same time
	maxProbes   = 64               // per asker
	maxBacks    = 4                // per asker
	askerTime   = 15 * time.Second // maximum duration of one conversation
	knockTime   = 2 * time.Second  // for the connection back to the asker
	knocks      = 3                // datagrams per probeBack
	maxTokens   = 256              // remembered, of conversations whose datagrams arrived
	acceptRetry = 10 * time.Millisecond
)

// An Answerer answers [Reach] on one TCP and one UDP port of the same number. It
// connects only to addresses that asked it over TCP, and no answer is longer than
// its question.
type Answerer struct {
	tcp *net.TCPListener
	udp *net.UDPConn
	log func(line string) // may be nil

	work   sync.WaitGroup
	slots  chan struct{}
	closes chan struct{} // closed by Close

	mu     sync.Mutex
	tokens []uint64 // of the conversations whose datagrams arrived, newest last
	conns  map[net.Conn]bool
	closed bool
}

// Answer starts an Answerer at an ADDRESS:PORT. It passes one line about each
// asker to log, which may be nil and must be safe for concurrent use. The caller
// closes the Answerer.
func Answer(addr string, log func(line string)) (*Answerer, error) {
	tcp, udp, err := listenBoth(addr)
	if err != nil {
		return nil, err
	}
	a := &Answerer{tcp: tcp, udp: udp, log: log, slots: make(chan struct{}, maxAskers), closes: make(chan struct{}), conns: map[net.Conn]bool{}}
	a.work.Go(a.acceptAll)
	a.work.Go(a.echoAll)
	return a, nil
}

// Addr returns the address that it listens on.
func (a *Answerer) Addr() netip.AddrPort { return a.tcp.Addr().(*net.TCPAddr).AddrPort() }

// Close ends all conversations and waits for their goroutines.
func (a *Answerer) Close() error {
	a.mu.Lock()
	if !a.closed {
		a.closed = true
		close(a.closes)
	}
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
		a.slots <- struct{}{} // if all are in use, new connections wait in the kernel's queue
		conn, err := a.tcp.Accept()
		if err != nil {
			<-a.slots
			if errors.Is(err, net.ErrClosed) {
				return
			}
			select { // descriptors have run out, or the asker has hung up: the next may succeed
			case <-time.After(acceptRetry):
			case <-a.closes:
			}
			continue
		}
		a.work.Go(func() {
			defer func() { <-a.slots }()
			if a.track(conn) {
				a.converse(conn)
			}
			a.mu.Lock()
			defer a.mu.Unlock()
			delete(a.conns, conn)
			_ = conn.Close()
		})
	}
}

// track makes Close close a connection. It returns false after Close.
func (a *Answerer) track(c net.Conn) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.conns[c] = true
	return !a.closed
}

// converse answers one asker.
func (a *Answerer) converse(conn net.Conn) {
	_ = conn.SetDeadline(time.Now().Add(askerTime))
	backs := 0
	for range maxProbes {
		p, err := readProbe(conn)
		if err != nil {
			return
		}
		reply := p.pong(time.Now())
		switch {
		case p.kind == probeBack && backs < maxBacks:
			backs++
			reply = a.knock(conn.RemoteAddr(), p)
			if a.log != nil {
				a.log("answered " + conn.RemoteAddr().String())
			}
		case p.kind != probePing:
			return
		}
		if _, err := conn.Write(reply.encode()); err != nil {
			return
		}
	}
}

// knock sends messages to the asker's own ports and returns the result.
func (a *Answerer) knock(asker net.Addr, p probe) probe {
	result := probe{kind: probeResult, token: p.token}
	hello := probe{kind: probeKnock, token: p.token}.encode()
	host, _, _ := net.SplitHostPort(asker.String()) // TCP addresses have both
	if a.heard(p) {
		result.flags |= heardUDP
	}
	if udp, err := net.Dial("udp", net.JoinHostPort(host, strconv.Itoa(int(p.udp)))); err == nil {
		for range knocks {
			_, _ = udp.Write(hello) // the asker sees which ones arrive
		}
		_ = udp.Close()
	}
	tcp, err := net.DialTimeout("tcp", net.JoinHostPort(host, strconv.Itoa(int(p.tcp))), knockTime)
	switch {
	case err == nil:
		result.flags |= dialled
		_ = tcp.SetDeadline(time.Now().Add(knockTime))
		_, _ = tcp.Write(hello)
		_ = tcp.Close()
	case errors.Is(err, syscall.ECONNREFUSED):
		result.flags |= refusedTCP
	}
	return result
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
		a.remember(p)
		_, _ = a.udp.WriteToUDPAddrPort(p.pong(time.Now()).encode(), from) // the asker repeats a ping that got no answer
	}
}

// remember notes that a datagram of a conversation has arrived.
func (a *Answerer) remember(p probe) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if !slices.Contains(a.tokens, p.conversation()) {
		a.tokens = append(a.tokens, p.conversation())
		a.tokens = a.tokens[max(0, len(a.tokens)-maxTokens):]
	}
}

// heard reports whether a datagram of the conversation has arrived.
func (a *Answerer) heard(p probe) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	return slices.Contains(a.tokens, p.conversation())
}

func readProbe(r io.Reader) (probe, error) {
	var b [probeSize]byte
	if _, err := io.ReadFull(r, b[:]); err != nil {
		return probe{}, err
	}
	return decodeProbe(b[:])
}
