package query

import (
	"bytes"
	"context"
	"io"
	"net"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func FuzzProbe(f *testing.F) {
	f.Add(probe{kind: probeBack, flags: heardUDP, tcp: 7946, udp: 1, token: 1 << 60, time: -1}.encode())
	f.Add([]byte(probeMagic))
	f.Add([]byte{})
	f.Fuzz(func(t *testing.T, b []byte) {
		p, err := decodeProbe(b)
		if err == nil {
			require.Equal(t, b, p.encode(), "accepts only what encode returns")
		}
	})
}

func answering(t *testing.T) *Answerer {
	a, err := Answer("127.0.0.1:0", nil)
	require.NoError(t, err)
	t.Cleanup(func() { _ = a.Close() })
	return a
}

// failures returns the checks that failed, by name.
func failures(checks []Check) map[string]Check {
	failed := map[string]Check{}
	for _, c := range checks {
		if !c.OK {
			failed[c.Name] = c
		}
	}
	return failed
}

func TestAllDirections(t *testing.T) {
	for _, listen := range []string{"", "127.0.0.1:0", ":0"} {
		checks := Reach(t.Context(), answering(t).Addr().String(), listen)
		require.Empty(t, failures(checks))
		require.Len(t, checks, 5)
		require.Positive(t, checks[0].RTT)
		require.Less(t, checks[1].Clock, 5.)
		require.Positive(t, checks[2].RTT)
	}
}

// Reach names each direction that fails, and says what to do.
func TestFailingDirections(t *testing.T) {
	deaf := answering(t)
	require.NoError(t, deaf.udp.Close()) // as if a firewall dropped datagrams
	at := deaf.Addr().String()
	failed := failures(Reach(t.Context(), at, ""))
	require.Len(t, failed, 1)
	require.Contains(t, failed["UDP to "+at].Do, "for UDP in the firewall")

	mute := stranger(t, func(p probe) []byte { // it answers, but never knocks
		if p.kind == probeBack {
			return probe{kind: probeResult, flags: heardUDP | refusedTCP}.encode()
		}
		return p.pong(time.Now().Add(-24 * time.Hour)).encode()
	})
	failed = failures(Reach(t.Context(), mute, ""))
	require.Len(t, failed, 3)
	require.Contains(t, failed["TCP from "+mute+" to here"].Detail, "refused")
	require.Contains(t, failed["UDP from "+mute+" to here"].Do, "allow UDP from that machine")
	require.InDelta(t, -86400, failed["clock of "+mute].Clock, 5)

	other := stranger(t, func(probe) []byte { return []byte("HTTP/1.1 400 Bad Request\r\n\r\n......................") })
	require.Contains(t, failures(Reach(t.Context(), other, ""))["TCP to "+other].Detail, "not from ringtrain doctor")

	closed := answering(t)
	at = closed.Addr().String()
	require.NoError(t, closed.Close())
	require.Contains(t, failures(Reach(t.Context(), at, ""))["TCP to "+at].Do, "run ringtrain doctor --listen")
	require.Contains(t, failures(Reach(t.Context(), "nowhere.invalid:1", ""))["TCP to nowhere.invalid:1"].Do, "cannot resolve the name")
}

// Reach does not blame the network if its context ends, whatever it waits for.
func TestReachIsCancelled(t *testing.T) {
	for name, last := range map[string]probeKind{"answer": probePing, "result": probeBack} {
		ctx, cancel := context.WithCancel(t.Context())
		mute := stranger(t, func(p probe) []byte {
			if p.kind != last {
				return p.pong(time.Now()).encode()
			}
			cancel()
			return nil
		})
		require.Empty(t, Reach(ctx, mute, ""), name)
		require.Empty(t, Reach(ctx, mute, ""), "%s: already cancelled", name)
	}
}

// An answer that arrives after the next ping has left is measured from its own ping. An
// Answerer that has missed the first datagram of a conversation has still heard it.
func TestLateAnswersOverUDP(t *testing.T) {
	tcp, udp, err := listenBoth("127.0.0.1:0")
	require.NoError(t, err)
	defer tcp.Close()
	conn, err := net.Dial("tcp", tcp.Addr().String())
	require.NoError(t, err)
	defer conn.Close()
	heard := &Answerer{}
	var work sync.WaitGroup
	work.Go(func() { // answers each ping when the next one arrives
		var late probe
		var b [probeSize]byte
		for {
			n, from, err := udp.ReadFromUDPAddrPort(b[:])
			if err != nil {
				return
			}
			p, err := decodeProbe(b[:n])
			if late.kind != 0 && err == nil {
				heard.remember(p)
				_, _ = udp.WriteToUDPAddrPort(late.pong(time.Now()).encode(), from)
			}
			late = p
		}
	})
	a := &asker{conn: conn.(*net.TCPConn), token: 7 << pingBits}
	best := a.pingUDP(t.Context())
	require.NoError(t, udp.Close())
	work.Wait()
	require.GreaterOrEqual(t, best, replyTime/pings, "the next ping leaves after that time")
	require.True(t, heard.heard(probe{kind: probeBack, token: a.token}))
}

// stranger starts a TCP server that answers probes with reply.
func stranger(t *testing.T, reply func(probe) []byte) string {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	t.Cleanup(func() { _ = l.Close() })
	go func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			for {
				p, err := readProbe(conn)
				if err != nil {
					_ = conn.Close()
					break
				}
				_, _ = conn.Write(reply(p))
			}
		}
	}()
	return l.Addr().String()
}

// An Answerer answers only probes, never with more bytes than it received, and
// limits the probes per connection.
func TestAnswererIsBounded(t *testing.T) {
	a := answering(t)
	udp, err := net.DialUDP("udp", nil, net.UDPAddrFromAddrPort(a.Addr()))
	require.NoError(t, err)
	defer udp.Close()
	ping := probe{kind: probePing, token: 7}.encode()
	for _, b := range [][]byte{
		{}, []byte("RINGTRN"), ping[:probeSize-1], append(ping[:probeSize:probeSize], 0),
		probe{kind: probePong, token: 7}.encode(), probe{kind: probeBack, token: 7, tcp: 1, udp: 1}.encode(), make([]byte, 1400),
	} {
		_, _ = udp.Write(b)
	}
	_, err = udp.Write(probe{kind: probePing, token: 8}.encode())
	require.NoError(t, err)
	require.NoError(t, udp.SetReadDeadline(time.Now().Add(5*time.Second)))
	var b [2 * probeSize]byte
	n, err := udp.Read(b[:])
	require.NoError(t, err)
	require.Equal(t, probeSize, n)
	p, err := decodeProbe(b[:n])
	require.NoError(t, err)
	require.Equal(t, probePong, p.kind)
	require.EqualValues(t, 8, p.token, "the other datagrams got no answer")

	conn, err := net.Dial("tcp", a.Addr().String())
	require.NoError(t, err)
	defer conn.Close()
	require.NoError(t, conn.SetDeadline(time.Now().Add(10*time.Second)))
	_, err = conn.Write(bytes.Repeat(ping, maxProbes))
	require.NoError(t, err)
	answers := make([]byte, maxProbes*probeSize)
	_, err = io.ReadFull(conn, answers)
	require.NoError(t, err)
	_, _ = conn.Write(ping)
	more, _ := io.ReadAll(conn) // it may end with a reset
	require.Empty(t, more)

	garbage, err := net.Dial("tcp", a.Addr().String())
	require.NoError(t, err)
	defer garbage.Close()
	_, err = garbage.Write(make([]byte, probeSize))
	require.NoError(t, err)
	require.NoError(t, garbage.SetDeadline(time.Now().Add(10*time.Second)))
	got, err := io.ReadAll(garbage)
	require.NoError(t, err)
	require.Empty(t, got)
}
