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

// prover makes the secrets of processes with one new key.
func prover(t testing.TB) func(tcp.Identity) *secret.Identity {
	key, err := secret.New()
	require.NoError(t, err)
	return func(id tcp.Identity) *secret.Identity {
		s, err := key.Identity(id.Name, id.Nonce)
		require.NoError(t, err)
		return s
	}
}

func TestGroupUnderTLS(t *testing.T) {
	collectivetest.TestGroup(t, func(t testing.TB, n int) []*collective.Group {
		if n > 5 {
			t.Skip("TLS does not know of ranks, so the small sizes show as much, in half the time")
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

// Whoever has another key, or none, is told so in words, from either side.
func TestRefusalsOfKeys(t *testing.T) {
	prove := prover(t)
	sealed, plain := listenAs(t, 2, prove), listen(t, 2)
	want := tcp.Peer{Name: "n/0", Nonce: 100}
	require.NoError(t, dial(t, sealed[0], sealed[1].id, want))
	require.NoError(t, dial(t, plain[0], plain[1].id, want))

	for what, c := range map[string]struct {
		to   *node
		from tcp.Identity
		says string
	}{
		"another key":       {sealed[0], listenAs(t, 2, prover(t))[1].id, "it uses a different key"},
		"none to a key":     {sealed[0], plain[1].id, "it has a key, and this process has none"},
		"a key to none":     {plain[0], sealed[1].id, "it has no key, and this process has one"},
		"not the one meant": {sealed[1], sealed[0].id, "this is n/1, not n/0"},
	} {
		err := dial(t, c.to, c.from, want)
		require.ErrorIs(t, err, tcp.ErrRefused, what)
		require.ErrorContains(t, err, c.says, what)
	}
	err := dial(t, sealed[0], sealed[1].id, tcp.Peer{Name: "n/0", Nonce: 99})
	require.ErrorIs(t, err, secret.ErrOtherPeer)
	require.ErrorContains(t, err, "started again")

	// The certificate decides, not what the hello says.
	liar := sealed[1].id
	liar.Name = "n/7"
	require.ErrorContains(t, dial(t, sealed[0], liar, want), "it says that it is n/7, its certificate says n/1")
	liar = sealed[1].id
	liar.Nonce++
	require.ErrorContains(t, dial(t, sealed[0], liar, want), "its certificate says n/1")
	liar = sealed[1].id
	liar.Cluster = "other"
	require.ErrorContains(t, dial(t, sealed[0], liar, want), `this is cluster "test"`)
}

// A stranger to the key who talks TLS learns no more than that.
func TestStrangersUnderTLS(t *testing.T) {
	nodes := listenAs(t, 1, prover(t))
	conn, err := tls.Dial("tcp", nodes[0].addr().String(), &tls.Config{InsecureSkipVerify: true})
	if err == nil { // the server judges last
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
		require.Equal(t, garbage[:2] == "RI", len(answer) > 100, "%q", answer) // why not, in a hello
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
	require.ErrorContains(t, err, "it hung up") // which may be the crowd's fault
}

// A member of the View with another key is named, and nobody waits for it.
func TestConnectToAnotherKey(t *testing.T) {
	nodes := append(listenAs(t, 1, prover(t)), listenAs(t, 2, prover(t))[1])
	members := make([]collective.Member, 2)
	for r, n := range nodes {
		members[r] = collective.Member{Name: n.id.Name, Nonce: n.id.Nonce, Addrs: []netip.AddrPort{n.addr()}}
	}
	for r, n := range nodes {
		_, err := n.gate.Connect(deadline(t), collective.View{Job: 7, Epoch: 1, Self: r, Members: members})
		var missing *collective.RankError
		require.ErrorAs(t, err, &missing)
		require.Equal(t, 1-r, missing.Rank)
		require.ErrorIs(t, err, secret.ErrOtherKey)
	}
}

// The end of a context ends a write that the peer does not take, and Close
// does not wait for it.
func TestInterruptUnderTLS(t *testing.T) {
	groups := connect(t, listenAs(t, 2, prover(t)))
	ctx, cancel := context.WithTimeout(context.Background(), 200*time.Millisecond)
	defer cancel()
	began := time.Now()
	err := collective.AllReduce(ctx, groups[0], make([]float32, 32<<20), collective.Sum) // the other does not call
	var late *collective.RankError
	require.ErrorAs(t, err, &late)
	require.Equal(t, 1, late.Rank)
	for _, g := range groups {
		assert.NoError(t, g.Close())
	}
	require.Less(t, time.Since(began), 4*time.Second)
}
