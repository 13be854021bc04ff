package tcp_test

import (
	"context"
	"crypto/tls"
	"io"
	"net"
	"net/netip"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/ringtrain/ringtrain/collective"
	"github.com/ringtrain/ringtrain/collective/collectivetest"
	"github.com/ringtrain/ringtrain/collective/secret"
	"github.com/ringtrain/ringtrain/collective/tcp"
)

// prover returns a function that makes the secrets of processes that share a new key.
func prover(t testing.TB) func(tcp.Identity) *secret.Identity {
	key := secret.New()
	return func(id tcp.Identity) *secret.Identity {
		s, err := key.Identity(id.Name, id.Nonce)
		require.NoError(t, err)
		return s
	}
}

func TestGroupUnderTLS(t *testing.T) {
	collectivetest.TestGroup(t, func(t testing.TB, n int) []*collective.Group {
		if n > 5 {
			t.Skip("TLS does not depend on the number of ranks, so small groups suffice")
		}
		return connect(t, listenAs(t, n, prover(t)))
	})
}

func dial(t testing.TB, to *node, id tcp.Identity, want tcp.Peer) error {
	l, err := tcp.Dial(deadline(t), to.addr().String(), id, want, tcp.Purpose{Job: 7, Epoch: 1, Rank: 1, Channel: tcp.Bulk})
	if err == nil {
		require.Equal(t, want.Name, l.Peer().Name)
		require.NoError(t, l.Close())
	}
	return err
}

// A process that dials with a different key, or without one, gets an error that says so, and
// vice versa.
func TestRefusalsOfKeys(t *testing.T) {
	prove := prover(t)
	keyed, plain := listenAs(t, 2, prove), listen(t, 2)
	want := tcp.Peer{Name: "n/0", Nonce: 100}
	require.NoError(t, dial(t, keyed[0], keyed[1].id, want))
	require.NoError(t, dial(t, plain[0], plain[1].id, want))

	for what, c := range map[string]struct {
		to   *node
		from tcp.Identity
		says string
	}{
		"a different key":               {keyed[0], listenAs(t, 2, prover(t))[1].id, "it uses a different key"},
		"no key, but the other has one": {keyed[0], plain[1].id, "it has a key, and this process has none"},
		"a key, but the other has none": {plain[0], keyed[1].id, "it has no key, and this process has one"},
		"the wrong process":             {keyed[1], keyed[0].id, "this is n/1, not n/0"},
	} {
		err := dial(t, c.to, c.from, want)
		require.ErrorIs(t, err, tcp.ErrRefused, what)
		require.ErrorContains(t, err, c.says, what)
	}
	err := dial(t, keyed[0], keyed[1].id, tcp.Peer{Name: "n/0", Nonce: 99})
	require.ErrorIs(t, err, secret.ErrOtherPeer)
	require.ErrorContains(t, err, "started again")

	// The certificate counts, not the hello.
	liar := keyed[1].id
	liar.Name = "n/7"
	require.ErrorContains(t, dial(t, keyed[0], liar, want), "it claims to be n/7, but its certificate is that of n/1")
	liar = keyed[1].id
	liar.Nonce++
	require.ErrorContains(t, dial(t, keyed[0], liar, want), "its certificate is that of n/1")
	liar = keyed[1].id
	liar.Cluster = "other"
	require.ErrorContains(t, dial(t, keyed[0], liar, want), `this is cluster "test"`)
}

// A process without the key learns nothing from a TLS handshake, and nothing but the reason
// from a hello. Dialling something else is reported as such.
func TestStrangersUnderTLS(t *testing.T) {
	nodes := listenAs(t, 1, prover(t))
	conn, err := tls.Dial("tcp", nodes[0].addr().String(), &tls.Config{InsecureSkipVerify: true})
	if err == nil { // in TLS 1.3 the server checks the client last
		_, err = conn.Read(make([]byte, 1))
		require.NoError(t, conn.Close())
	}
	require.ErrorContains(t, err, "remote error")
	for _, garbage := range []string{"GET / HTTP/1.1\r\n\r\n", "\x16\x03\x01\x00\x05hello", "\x16\x03", "RINGTRN\x00\x02\x00\x00\x00"} {
		conn, err := net.Dial("tcp", nodes[0].addr().String())
		require.NoError(t, err)
		_, err = conn.Write([]byte(garbage))
		require.NoError(t, err)
		_ = conn.(*net.TCPConn).CloseWrite()
		answer, _ := io.ReadAll(conn)
		require.NotContains(t, string(answer), "n/0")
		require.Equal(t, garbage[:2] == "RI", len(answer) > 100, "%q", answer) // a hello says why
		require.NoError(t, conn.Close())
	}
	other, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer other.Close()
	go func() {
		for _, says := range []string{"220 mail.example ready, please speak\r\n", ""} {
			if c, err := other.Accept(); err == nil {
				_, _ = c.Read(make([]byte, 1<<12))
				_, _ = c.Write([]byte(says))
				_ = c.Close()
			}
		}
	}()
	_, err = tcp.Dial(deadline(t), other.Addr().String(), nodes[0].id, tcp.Peer{Name: "x"}, tcp.Purpose{})
	require.ErrorIs(t, err, tcp.ErrNotOurs)
	_, err = tcp.Dial(deadline(t), other.Addr().String(), nodes[0].id, tcp.Peer{Name: "x"}, tcp.Purpose{})
	require.ErrorContains(t, err, "it closed the connection during the handshake") // not final: the listener may just be busy
}

// Connect names the member that has a different key, and does not wait for it.
func TestConnectWithDifferentKeys(t *testing.T) {
	nodes := append(listenAs(t, 1, prover(t)), listenAs(t, 2, prover(t))[1])
	members := make([]collective.Member, 2)
	for r, n := range nodes {
		members[r] = collective.Member{Name: n.id.Name, Nonce: n.id.Nonce, Addrs: []netip.AddrPort{n.addr()}}
	}
	for r, n := range nodes {
		_, err := n.connector.Connect(deadline(t), collective.View{Job: 7, Epoch: 1, Self: r, Members: members})
		var missing *collective.RankError
		require.ErrorAs(t, err, &missing)
		require.Equal(t, 1-r, missing.Rank)
		require.ErrorIs(t, err, secret.ErrOtherKey)
	}
}

// The end of a context interrupts a write that the peer does not read, and Close does not
// wait for that write.
func TestInterruptUnderTLS(t *testing.T) {
	groups := connect(t, listenAs(t, 2, prover(t)))
	v := make([]float32, 32<<20)
	ctx, cancel := context.WithTimeout(context.Background(), 200*time.Millisecond) // it must not end before the call
	defer cancel()
	began := time.Now()
	err := collective.AllReduce(ctx, groups[0], v, collective.Sum) // the other does not call
	var late *collective.RankError
	require.ErrorAs(t, err, &late)
	require.Equal(t, 1, late.Rank)
	for _, g := range groups {
		assert.NoError(t, g.Close())
	}
	require.Less(t, time.Since(began), 4*time.Second)
}
