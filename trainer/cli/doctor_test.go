package cli

import (
	"bytes"
	"encoding/json"
	"io"
	"net"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ringtrain/ringtrain/cuda"
	"github.com/ringtrain/ringtrain/trainer/catalog"
)

func FuzzProbe(f *testing.F) {
	f.Add(probe{kind: probeBack, flags: heardUDP, tcp: 7946, udp: 1, token: 1 << 60, time: -1}.encode())
	f.Add([]byte(probeMagic))
	f.Add([]byte{})
	f.Fuzz(func(t *testing.T, b []byte) {
		p, err := decodeProbe(b)
		if err == nil {
			require.Equal(t, b, p.encode(), "what is taken is what encode makes")
		}
	})
}

func answering(t *testing.T) *answerer {
	a, err := answer("127.0.0.1:0", nil)
	require.NoError(t, err)
	t.Cleanup(func() { _ = a.close() })
	return a
}

// failures are the checks that failed, by name.
func failures(checks []check) map[string]check {
	failed := map[string]check{}
	for _, c := range checks {
		if !c.OK {
			failed[c.Name] = c
		}
	}
	return failed
}

func TestAllDirections(t *testing.T) {
	for _, listen := range []string{"", "127.0.0.1:0", ":0"} {
		checks := ask(t.Context(), answering(t).addr().String(), listen)
		require.Empty(t, failures(checks))
		require.Len(t, checks, 5)
		require.Positive(t, checks[0].RTT)
		require.Less(t, checks[1].Clock, 5.)
		require.Positive(t, checks[2].RTT)
	}
}

// Each direction that fails is named, with what to do.
func TestFailingDirections(t *testing.T) {
	deaf := answering(t)
	require.NoError(t, deaf.udp.Close()) // as if a firewall swallowed datagrams
	at := deaf.addr().String()
	failed := failures(ask(t.Context(), at, ""))
	require.Len(t, failed, 1)
	require.Contains(t, failed["UDP to "+at].Do, "for UDP in the firewall")

	mute := stranger(t, func(p probe) []byte { // it answers, and never knocks
		if p.kind == probeBack {
			return probe{kind: probeTold, flags: heardUDP | refusedTCP}.encode()
		}
		return p.pong(time.Now().Add(-24 * time.Hour)).encode()
	})
	failed = failures(ask(t.Context(), mute, ""))
	require.Len(t, failed, 3)
	require.Contains(t, failed["TCP from "+mute+" to here"].Detail, "refused")
	require.Contains(t, failed["UDP from "+mute+" to here"].Do, "for UDP from there")
	require.InDelta(t, -86400, failed["clock of "+mute].Clock, 5)

	other := stranger(t, func(probe) []byte { return []byte("HTTP/1.1 400 Bad Request\r\n\r\n......................") })
	require.Contains(t, failures(ask(t.Context(), other, ""))["TCP to "+other].Detail, "not ringtrain doctor")

	closed := answering(t)
	at = closed.addr().String()
	require.NoError(t, closed.close())
	require.Contains(t, failures(ask(t.Context(), at, ""))["TCP to "+at].Do, "run ringtrain doctor --listen")
	require.Contains(t, failures(ask(t.Context(), "nowhere.invalid:1", ""))["TCP to nowhere.invalid:1"].Do, "no such name")
}

// stranger is a TCP server that answers probes in its own way.
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

// Only the own questions are answered, with as much as was asked at most, and
// not without end.
func TestAnswererIsBounded(t *testing.T) {
	a := answering(t)
	udp, err := net.DialUDP("udp", nil, net.UDPAddrFromAddrPort(a.addr()))
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
	require.EqualValues(t, 8, p.token, "the others got no answer")

	conn, err := net.Dial("tcp", a.addr().String())
	require.NoError(t, err)
	defer conn.Close()
	require.NoError(t, conn.SetDeadline(time.Now().Add(10*time.Second)))
	_, err = conn.Write(bytes.Repeat(ping, mostProbes))
	require.NoError(t, err)
	answers := make([]byte, mostProbes*probeSize)
	_, err = io.ReadFull(conn, answers)
	require.NoError(t, err)
	_, _ = conn.Write(ping)
	more, _ := io.ReadAll(conn) // it may end with a reset
	require.Empty(t, more)

	garbage, err := net.Dial("tcp", a.addr().String())
	require.NoError(t, err)
	defer garbage.Close()
	_, err = garbage.Write(make([]byte, probeSize))
	require.NoError(t, err)
	require.NoError(t, garbage.SetDeadline(time.Now().Add(10*time.Second)))
	got, err := io.ReadAll(garbage)
	require.NoError(t, err)
	require.Empty(t, got)
}

func TestDoctor(t *testing.T) {
	a := answering(t)
	run := func(args ...string) (int, string, string) {
		var out, errs bytes.Buffer
		code := Main(catalog.New(), append([]string{"doctor"}, args...), &out, &errs)
		return code, out.String(), errs.String()
	}
	code, stdout, stderr := run(a.addr().String())
	require.Zero(t, code, stderr)
	for _, fact := range []string{"cores ", "memory ", "SIMD ", "clock ", "network ", "kernel ", "GPU ", "ok        loopback", "ok        UDP from " + a.addr().String()} {
		require.Contains(t, stdout, fact)
	}
	code, stdout, stderr = run("--json", a.addr().String())
	require.Zero(t, code, stderr)
	var d diagnosis
	require.NoError(t, json.Unmarshal([]byte(stdout), &d))
	require.Len(t, d.Checks, 6)
	require.Positive(t, d.Machine.Cores)
	require.NotEmpty(t, d.Interfaces)
	require.Equal(t, d.GPU.Problem == "", len(d.GPU.Devices) > 0)

	require.NoError(t, a.close())
	code, stdout, stderr = run(a.addr().String())
	require.Equal(t, 1, code)
	require.Contains(t, stdout, "FAILED    TCP to "+a.addr().String())
	require.Equal(t, "ringtrain: 1 of 2 checks failed\n", stderr)
	for _, args := range [][]string{{"host"}, {":7946"}, {"host:0"}, {"--listen", "7946"}, {"--listen", "192.0.2.77:1"}, {"--nosuch"}} {
		code, stdout, stderr = run(args...)
		require.Equal(t, 2, code, "%v: %s", args, stderr)
		require.Empty(t, stdout)
		require.Equal(t, 1, bytes.Count([]byte(stderr), []byte("\n")), stderr)
	}
}

func TestWriteGPUs(t *testing.T) {
	write := func(r cuda.Report) string {
		var b bytes.Buffer
		writeGPUs(&b, r)
		return b.String()
	}
	require.Equal(t, `GPU       0: NVIDIA H200, sm_90, 139.8 GiB, 132 multiprocessors
module    NVIDIA 580.159.04, in the kernel
driver    CUDA 13.0, libcuda.so.1
NCCL      missing: there is no libnccl.so.2: install it
`, write(cuda.Report{
		Module: "580.159.04", CUDA: "13.0",
		Devices: []cuda.Info{{Name: "NVIDIA H200", Major: 9, Memory: 150111322112, Multiprocessors: 132}},
		Libraries: []cuda.Found{
			{Name: "driver", Version: "CUDA 13.0", Path: "libcuda.so.1"},
			{Name: "NCCL", Problem: "there is no libnccl.so.2: install it"},
		},
	}))
	require.Equal(t, "GPU       no GPU can be used: there is no libcuda.so.1\n", write(cuda.Report{
		Problem:   "no GPU can be used: there is no libcuda.so.1",
		Libraries: []cuda.Found{{Name: "driver", Problem: "there is no libcuda.so.1"}},
	}), "it is said once")
}
