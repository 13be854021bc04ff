package query

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"os"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/ringtrain/ringtrain/collective/errtext"
)

// How long an asker waits, and what it accepts.
const (
	dialTime  = 3 * time.Second // for a connection
	replyTime = 1 * time.Second // for one answer
	pings     = 5               // per protocol; the fastest counts
	maxSkew   = 12 * time.Hour  // between the clocks; half of what certificates allow
)

// A Check is the result of one check, such as whether UDP arrives here.
type Check struct {
	Name   string  `json:"name"`
	OK     bool    `json:"ok"`
	RTT    float64 `json:"rtt_ms,omitempty"`  // milliseconds of the fastest round trip; 0 if none was measured
	Detail string  `json:"detail"`            // what was found
	Do     string  `json:"do,omitempty"`      // what the user can do about it; "" if the check passed
	Clock  float64 `json:"ahead_s,omitempty"` // seconds by which the other machine's clock is ahead
}

// An asker checks the network to another machine and back.
type asker struct {
	target string
	token  uint64
	conn   *net.TCPConn

	checks []Check
}

// Reach checks TCP and UDP in both directions between this machine and target,
// the HOST:PORT of an [Answerer]. It returns one Check for each direction, and
// one for the other machine's clock. If a direction fails, it omits the checks
// that depend on it. listen is the ADDRESS:PORT at which the Answerer contacts
// this machine; "" means any free port. If ctx ends before the last check, Reach
// returns none, because the network is not to blame.
func Reach(ctx context.Context, target, listen string) []Check {
	a := &asker{target: target, token: probe{token: rand.Uint64()}.conversation()}
	a.check(ctx, listen)
	if ctx.Err() != nil {
		return nil
	}
	return a.checks
}

// check makes the checks, until ctx ends.
func (a *asker) check(ctx context.Context, listen string) {
	if !a.connect(ctx) {
		return
	}
	defer closeWith(ctx, a.conn)()
	if a.pingTCP() {
		replied := a.pingUDP(ctx)
		a.checkBack(ctx, listen, replied)
	}
}

// closeWith closes c when ctx ends or the returned function is called, which ends
// all waits for c.
func closeWith(ctx context.Context, c io.Closer) (end func()) {
	stop := context.AfterFunc(ctx, func() { _ = c.Close() })
	return func() {
		stop()
		_ = c.Close()
	}
}

func (a *asker) add(c Check) { a.checks = append(a.checks, c) }

func (a *asker) there(protocol string) string { return protocol + " to " + a.target }
func (a *asker) back(protocol string) string  { return protocol + " from " + a.target + " to here" }

// connect opens the TCP connection to the Answerer.
func (a *asker) connect(ctx context.Context) bool {
	conn, err := (&net.Dialer{Timeout: dialTime}).DialContext(ctx, "tcp", a.target)
	if err == nil {
		a.conn = conn.(*net.TCPConn)
		return true
	}
	c := Check{Name: a.there("TCP"), Detail: reason(err), Do: "check the address, and that the other machine is up"}
	var unknown *net.DNSError
	switch {
	case errors.As(err, &unknown):
		c.Do = "this machine cannot resolve the name: check the spelling, or use an IP address"
	case errors.Is(err, syscall.ECONNREFUSED):
		c.Do = "nothing listens on that port: run ringtrain doctor --listen with this port on the other machine, or check the address"
	case os.IsTimeout(err):
		c.Do = "a firewall may drop packets: allow TCP to this port, or check the address"
	}
	a.add(c)
	return false
}

// pingTCP measures the round-trip time and compares the clocks. It returns false if
// the other side is no Answerer.
func (a *asker) pingTCP() bool {
	best, ahead := time.Hour, time.Duration(0)
	for range pings {
		begin := time.Now()
		p, err := a.exchange(probe{kind: probePing, token: a.token}, replyTime)
		if err == nil && p.kind != probePong {
			err = errNotProbe
		}
		if err != nil {
			a.add(Check{Name: a.there("TCP"), Detail: "connected, but got no valid answer: " + reason(err),
				Do: "a job or another program uses that port: run ringtrain doctor --listen with another port on that machine"})
			return false
		}
		if took := time.Since(begin); took < best {
			best, ahead = took, time.Unix(0, p.time).Sub(begin.Add(took/2))
		}
	}
	a.add(Check{Name: a.there("TCP"), OK: true, RTT: ms(best), Detail: fmt.Sprintf("round trip %.3f ms", ms(best))})
	c := Check{Name: "clock of " + a.target, OK: ahead.Abs() < maxSkew, Clock: ahead.Seconds(), Detail: fmt.Sprintf("%+.3f s from this machine's clock", ahead.Seconds())}
	if !c.OK {
		c.Do = "synchronize the clocks, for instance with NTP: certificates are valid only for a limited time"
	}
	a.add(c)
	return true
}

func (a *asker) exchange(p probe, patience time.Duration) (probe, error) {
	_ = a.conn.SetDeadline(time.Now().Add(patience))
	if _, err := a.conn.Write(p.encode()); err != nil {
		return probe{}, err
	}
	return readProbe(a.conn)
}

// pingUDP sends datagrams to the other machine and returns the fastest round trip,
// or 0 if no answer arrived.
func (a *asker) pingUDP(ctx context.Context) (best time.Duration) {
	conn, err := net.DialUDP("udp", nil, net.UDPAddrFromAddrPort(a.conn.RemoteAddr().(*net.TCPAddr).AddrPort()))
	if err != nil {
		return 0
	}
	defer closeWith(ctx, conn)()
	var sent [pings]time.Time
	for i := range sent {
		sent[i] = time.Now()
		_, _ = conn.Write(probe{kind: probePing, token: a.token + uint64(i)}.encode())
		_ = conn.SetReadDeadline(sent[i].Add(replyTime / pings))
		for answered := -1; answered != i; { // answers to earlier pings may come first
			p, err := readDatagram(conn)
			if err != nil && !errors.Is(err, errNotProbe) {
				break
			}
			if n := p.token - a.token; err == nil && p.kind == probePong && n <= uint64(i) {
				answered = int(n)
				if took := time.Since(sent[n]); best == 0 || took < best {
					best = took
				}
			}
		}
	}
	return best
}

// checkBack asks the Answerer to contact ports of this machine that have not sent
// anything, and adds the checks of the remaining directions. replied is the result
// of pingUDP.
func (a *asker) checkBack(ctx context.Context, listen string, replied time.Duration) {
	if listen == "" {
		listen = net.JoinHostPort(a.conn.LocalAddr().(*net.TCPAddr).IP.String(), "0")
	}
	tcp, udp, err := listenBoth(listen)
	if err != nil {
		a.add(Check{Name: a.back("TCP and UDP"), Detail: reason(err), Do: "choose another address with --listen"})
		return
	}
	defer closeWith(ctx, tcp)()
	defer closeWith(ctx, udp)()
	accepted := make(chan bool, 1)
	go func() { accepted <- a.acceptKnock(ctx, tcp) }() // ends when tcp is closed
	result, err := a.exchange(probe{kind: probeBack, token: a.token, tcp: port(tcp.Addr()), udp: port(udp.LocalAddr())}, knockTime+replyTime)
	if err != nil || result.kind != probeResult {
		a.add(Check{Name: a.back("TCP and UDP"), Detail: "no result from the other machine: " + reason(err), Do: "run the same version of ringtrain there"})
	}
	heard := a.receiveKnock(udp)
	_ = tcp.SetDeadline(time.Now().Add(replyTime / 10))
	came := <-accepted
	switch {
	case err != nil || result.kind != probeResult:
		return
	case replied > 0:
		a.add(Check{Name: a.there("UDP"), OK: true, RTT: ms(replied), Detail: fmt.Sprintf("round trip %.3f ms", ms(replied))})
	case result.flags&heardUDP != 0:
		a.add(Check{Name: a.there("UDP"), OK: true, Detail: "datagrams arrive there, but the answers do not come back"})
	default:
		a.add(Check{Name: a.there("UDP"), Detail: "no datagram arrives there", Do: fmt.Sprintf("allow port %d for UDP in the firewall, as for TCP", portOf(a.target))})
	}
	a.addBack("TCP", came, result.flags)
	a.addBack("UDP", heard, result.flags)
}

// addBack adds the check of a direction to this machine.
func (a *asker) addBack(protocol string, ok bool, flags probeFlags) {
	c := Check{Name: a.back(protocol), OK: ok, Detail: "arrives"}
	switch {
	case ok:
	case protocol == "TCP" && flags&refusedTCP != 0:
		c.Detail, c.Do = "connection refused, although this program listens", "a firewall or address translation (NAT) refuses connections: allow all ports between the machines of the job"
	case protocol == "TCP" && flags&dialled != 0:
		c.Detail, c.Do = "another machine answered in place of this one", "there is address translation (NAT) between the machines: use addresses that both can reach directly"
	default:
		c.Detail = "nothing arrives here"
		c.Do = "allow " + protocol + " from that machine to all ports here: workers use ephemeral ports (use --listen to check one port)"
	}
	a.add(c)
}

// acceptKnock waits for the Answerer's connection.
func (a *asker) acceptKnock(ctx context.Context, l *net.TCPListener) bool {
	for {
		conn, err := l.Accept()
		if err != nil {
			return false
		}
		end := closeWith(ctx, conn)
		_ = conn.SetDeadline(time.Now().Add(replyTime))
		p, err := readProbe(conn)
		end()
		if err == nil && p.kind == probeKnock && p.token == a.token {
			return true
		}
	}
}

// receiveKnock reports whether a datagram of the Answerer arrives.
func (a *asker) receiveKnock(conn *net.UDPConn) bool {
	_ = conn.SetReadDeadline(time.Now().Add(replyTime / 4))
	for {
		p, err := readDatagram(conn)
		switch {
		case err == nil && p.kind == probeKnock && p.token == a.token:
			return true
		case err != nil && !errors.Is(err, errNotProbe):
			return false
		}
	}
}

// listenBoth opens a TCP and a UDP port with the same number.
func listenBoth(addr string) (*net.TCPListener, *net.UDPConn, error) {
	for tries := 1; ; tries++ {
		tcp, err := net.Listen("tcp", addr)
		if err != nil {
			return nil, nil, err
		}
		udp, err := net.ListenUDP("udp", net.UDPAddrFromAddrPort(tcp.Addr().(*net.TCPAddr).AddrPort()))
		if err == nil {
			return tcp.(*net.TCPListener), udp, nil
		}
		err = errors.Join(err, tcp.Close())
		if portOf(addr) != 0 || tries == 8 { // a random TCP port may be in use for UDP
			return nil, nil, err
		}
	}
}

func port(addr net.Addr) uint16 { return uint16(portOf(addr.String())) }

func readDatagram(conn *net.UDPConn) (probe, error) {
	var b [probeSize + 1]byte
	n, err := conn.Read(b[:])
	if err != nil {
		return probe{}, err
	}
	return decodeProbe(b[:n])
}

func portOf(target string) int {
	_, port, _ := net.SplitHostPort(target)
	n, _ := strconv.Atoi(port)
	return n
}

// reason returns the text of a network error without the name of the failed call.
func reason(err error) string {
	err = errtext.Reason(err)
	switch {
	case err == nil:
		return "unexpected answer"
	case os.IsTimeout(err):
		return "no answer"
	}
	return strings.TrimPrefix(err.Error(), "connect: ")
}

func ms(d time.Duration) float64 { return float64(d.Microseconds()) / 1000 }
