package query

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"os"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// How long an asker waits, and what it accepts.
const (
	dialTime  = 3 * time.Second // for a connection
	replyTime = 1 * time.Second // for one answer
	askTimes  = 5               // of which the quickest counts
	mostSkew  = 12 * time.Hour  // half of what certificates allow
)

// A Check is the result of one check, such as whether UDP arrives here.
type Check struct {
	Name   string  `json:"name"`
	OK     bool    `json:"ok"`
	RTT    float64 `json:"rtt_ms,omitempty"`  // milliseconds of the quickest round trip; 0 if none was measured
	Detail string  `json:"detail"`            // what was found
	Do     string  `json:"do,omitempty"`      // what the user can do about it; "" if all is well
	Clock  float64 `json:"ahead_s,omitempty"` // by how many seconds the other machine's clock is ahead
}

// An asker looks at the way to one other machine and back.
type asker struct {
	target string
	token  uint64
	conn   *net.TCPConn

	checks []Check
}

// Reach checks TCP and UDP in both directions between this machine and target,
// the HOST:PORT of an [Answerer]. It returns one Check for each direction, and
// one for the other machine's clock. Where a direction fails, later checks that
// depend on it are left out. listen is the ADDRESS:PORT at which this machine
// wants to be called back; "" is any free port.
func Reach(ctx context.Context, target, listen string) []Check {
	a := &asker{target: target, token: rand.Uint64()}
	if !a.connect(ctx) {
		return a.checks
	}
	defer a.conn.Close()
	if !a.pingTCP() {
		return a.checks
	}
	replied := a.pingUDP()
	a.knocked(listen, replied)
	return a.checks
}

func (a *asker) add(c Check) { a.checks = append(a.checks, c) }

func (a *asker) there(protocol string) string { return protocol + " to " + a.target }
func (a *asker) back(protocol string) string  { return protocol + " from " + a.target + " to here" }

// connect opens the conversation.
func (a *asker) connect(ctx context.Context) bool {
	conn, err := (&net.Dialer{Timeout: dialTime}).DialContext(ctx, "tcp", a.target)
	if err == nil {
		a.conn = conn.(*net.TCPConn)
		return true
	}
	c := Check{Name: a.there("TCP"), Detail: plainly(err), Do: "see that the address is right and that machine is up"}
	var unknown *net.DNSError
	switch {
	case errors.As(err, &unknown):
		c.Do = "no such name: write it as the other machine's name server knows it, or as an IP address"
	case errors.Is(err, syscall.ECONNREFUSED):
		c.Do = "nobody listens there: run ringtrain doctor --listen with that port on it, and see that the address is right"
	case os.IsTimeout(err):
		c.Do = "open the port for TCP in the firewall between, or see that the address is right"
	}
	a.add(c)
	return false
}

// pingTCP measures the round trip, and compares the clocks.
func (a *asker) pingTCP() bool {
	best, ahead := time.Hour, time.Duration(0)
	for range askTimes {
		begin := time.Now()
		p, err := a.exchange(probe{kind: probePing, token: a.token}, replyTime)
		if err == nil && p.kind != probePong {
			err = errNotProbe
		}
		if err != nil {
			a.add(Check{Name: a.there("TCP"), Detail: "connected, but what listens there does not answer doctor: " + plainly(err),
				Do: "a job or another program has that port; to check both directions, run ringtrain doctor --listen on another port of that machine"})
			return false
		}
		if took := time.Since(begin); took < best {
			best, ahead = took, time.Unix(0, p.time).Sub(begin.Add(took/2))
		}
	}
	a.add(Check{Name: a.there("TCP"), OK: true, RTT: ms(best), Detail: fmt.Sprintf("round trip %.3f ms", ms(best))})
	c := Check{Name: "clock of " + a.target, OK: ahead.Abs() < mostSkew, Clock: ahead.Seconds(), Detail: fmt.Sprintf("%+.3f s from this machine's", ahead.Seconds())}
	if !c.OK {
		c.Do = "set the clocks (by NTP): certificates are good for a time only"
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

// pingUDP sends datagrams to the other machine, whatever comes back.
func (a *asker) pingUDP() (best time.Duration) {
	conn, err := net.DialUDP("udp", nil, net.UDPAddrFromAddrPort(a.conn.RemoteAddr().(*net.TCPAddr).AddrPort()))
	if err != nil {
		return 0
	}
	defer conn.Close()
	for range askTimes {
		begin := time.Now()
		_, _ = conn.Write(probe{kind: probePing, token: a.token}.encode())
		_ = conn.SetReadDeadline(begin.Add(replyTime / askTimes))
		p, err := readDatagram(conn)
		if took := time.Since(begin); err == nil && p.kind == probePong && p.token == a.token && (best == 0 || took < best) {
			best = took
		}
	}
	return best
}

// knocked asks to be called back, at ports of this machine that have not sent
// anything, and tells of all directions that are left.
func (a *asker) knocked(listen string, replied time.Duration) {
	if listen == "" {
		listen = net.JoinHostPort(a.conn.LocalAddr().(*net.TCPAddr).IP.String(), "0")
	}
	tcp, udp, err := doorways(listen)
	if err != nil {
		a.add(Check{Name: a.back("TCP and UDP"), Detail: plainly(err), Do: "name another address with --listen"})
		return
	}
	defer tcp.Close()
	defer udp.Close()
	opened := make(chan bool, 1)
	go func() { opened <- a.opens(tcp) }() // ends when tcp is closed
	told, err := a.exchange(probe{kind: probeBack, token: a.token, tcp: port(tcp.Addr()), udp: port(udp.LocalAddr())}, knockTime+replyTime)
	if err != nil || told.kind != probeTold {
		a.add(Check{Name: a.back("TCP and UDP"), Detail: "it has not said: " + plainly(err), Do: "run the same version of ringtrain there"})
	}
	heard := a.hears(udp)
	_ = tcp.SetDeadline(time.Now().Add(replyTime / 10))
	came := <-opened
	switch {
	case err != nil || told.kind != probeTold:
		return
	case replied > 0:
		a.add(Check{Name: a.there("UDP"), OK: true, RTT: ms(replied), Detail: fmt.Sprintf("round trip %.3f ms", ms(replied))})
	case told.flags&heardUDP != 0:
		a.add(Check{Name: a.there("UDP"), OK: true, Detail: "datagrams arrive, but their answers do not come back"})
	default:
		a.add(Check{Name: a.there("UDP"), Detail: "no datagram has arrived", Do: fmt.Sprintf("open port %d for UDP in the firewall between, as for TCP", portOf(a.target))})
	}
	a.tellBack("TCP", came, told.flags)
	a.tellBack("UDP", heard, told.flags)
}

// tellBack adds what is known of a direction to here.
func (a *asker) tellBack(protocol string, ok bool, flags probeFlags) {
	c := Check{Name: a.back(protocol), OK: ok, Detail: "arrives"}
	switch {
	case ok:
	case protocol == "TCP" && flags&refusedTCP != 0:
		c.Detail, c.Do = "refused, though this program listens", "a firewall here, or an address translation between, refuses connections: open all ports for the job's machines"
	case protocol == "TCP" && flags&dialled != 0:
		c.Detail, c.Do = "another machine has answered in place of this one", "there is an address translation between: give the job addresses that both sides reach directly"
	default:
		c.Detail = "nothing has arrived"
		c.Do = "open the ports of this machine for " + protocol + " from there: workers use any number (--listen tries a certain port)"
	}
	a.add(c)
}

// opens waits for the connection that was asked for.
func (a *asker) opens(l *net.TCPListener) bool {
	for {
		conn, err := l.Accept()
		if err != nil {
			return false
		}
		_ = conn.SetDeadline(time.Now().Add(replyTime))
		p, err := readProbe(conn)
		_ = conn.Close()
		if err == nil && p.kind == probeKnock && p.token == a.token {
			return true
		}
	}
}

// hears reports whether a datagram that was asked for has come.
func (a *asker) hears(conn *net.UDPConn) bool {
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

// doorways are a TCP and a UDP port of one number.
func doorways(addr string) (*net.TCPListener, *net.UDPConn, error) {
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
		if portOf(addr) != 0 || tries == 8 { // a number that was drawn may be taken for UDP
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

// plainly is an error of the network without the call that met it.
func plainly(err error) string {
	var op *net.OpError
	switch {
	case err == nil:
		return "an answer of another kind"
	case errors.As(err, &op) && op.Err != nil:
		err = op.Err
	}
	if os.IsTimeout(err) {
		return "no answer"
	}
	return strings.TrimPrefix(err.Error(), "connect: ")
}

func ms(d time.Duration) float64 { return float64(d.Microseconds()) / 1000 }
