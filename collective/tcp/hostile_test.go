package tcp_test

import (
	"context"
	"fmt"
	"net"
	"runtime"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/ringtrain/ringtrain/collective"
	"github.com/ringtrain/ringtrain/collective/collectivetest"
	"github.com/ringtrain/ringtrain/collective/secret"
	"github.com/ringtrain/ringtrain/collective/tcp"
)

// traitor is rank 1 of 2: a process with the right key that sends whatever it likes once it
// has connected.
type traitor struct {
	bulk    *tcp.Link      // which it dials
	control chan *tcp.Link // which rank 0 dials
}

func (tr *traitor) AcceptFailed(error) {}

func (tr *traitor) Allow(tcp.Identity, tcp.Purpose) error { return nil }
func (tr *traitor) Accept(l *tcp.Link)                    { tr.control <- l }

// betray connects an honest rank 0 to a traitor. It returns the Transport of rank 0 and
// the traitor's two Links.
func betray(t *testing.T, prove func(tcp.Identity) *secret.Identity) (collective.View, *tcp.Transport, *tcp.Link, *tcp.Link) {
	nodes := listenAs(t, 1, prove)
	id := tcp.Identity{Cluster: "test", Name: "n/1", Nonce: 101}
	id.Secret = prove(id)
	tr := &traitor{control: make(chan *tcp.Link, 1)}
	listener, err := tcp.Listen(t.Context(), "127.0.0.1:0", id, tr)
	require.NoError(t, err)
	t.Cleanup(func() { assert.NoError(t, listener.Close()) })
	v := views(append(nodes, &node{id: id, listener: listener}), 1)[0]
	type connected struct {
		*tcp.Transport
		error
	}
	honest := make(chan connected, 1)
	go func() {
		made, err := nodes[0].connector.Connect(deadline(t), v)
		honest <- connected{made, err}
	}()
	tr.bulk, err = tcp.Dial(deadline(t), nodes[0].addr().String(), id, tcp.Peer{Name: "n/0", Nonce: 100},
		tcp.Purpose{Job: v.Job, Epoch: v.Epoch, Digest: v.Digest(), Rank: 1, Channel: tcp.Bulk, Streams: 1})
	require.NoError(t, err)
	t.Cleanup(func() { _ = tr.bulk.Close() })
	control := <-tr.control
	t.Cleanup(func() { _ = control.Close() })
	made := <-honest
	require.NoError(t, made.error)
	t.Cleanup(func() { assert.NoError(t, made.Close()) })
	return v, made.Transport, tr.bulk, control
}

// allocated returns how many bytes f allocates, including garbage.
func allocated(f func()) uint64 {
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	f()
	runtime.ReadMemStats(&after)
	return after.TotalAlloc - before.TotalAlloc
}

// A length that a member sends is checked before any memory is allocated for it, and the
// error says what it sent.
func TestHugeLengths(t *testing.T) {
	for name, prove := range map[string]func(tcp.Identity) *secret.Identity{
		"no key": noKey, "TLS": prover(t),
	} {
		t.Run(name, func(t *testing.T) {
			v, made, bulk, _ := betray(t, prove)
			g := collective.NewGroup(v, collective.OverTransport(v, made), collective.Options{})
			defer g.Close()
			require.Less(t, allocated(func() {
				huge := collective.Header{Job: v.Job, Epoch: v.Epoch, Seq: 1, Len: 1<<32 - 1, Call: collective.Call{
					Kind: collective.KindAllReduce, DType: collective.Float32, Op: collective.Sum, Count: 1 << 60}}
				require.NoError(t, bulk.Write(deadline(t), &huge, nil))
				err := collective.AllReduce(deadline(t), g, []float32{1}, collective.Sum)
				require.ErrorIs(t, err, collective.ErrMismatch)
				require.ErrorContains(t, err, "AllReduce(float32[1152921504606846976], sum)")
				var broken *collective.RankError
				require.ErrorAs(t, err, &broken)
				require.Equal(t, 1, broken.Rank)
			}), uint64(16<<20))

			for _, kind := range []collective.Kind{0xf0, 0xf1, 0xf2, 0x77} { // heartbeat, abort, goodbye, unknown
				v, made, _, control := betray(t, prove)
				require.Less(t, allocated(func() {
					h := collective.Header{Job: v.Job, Epoch: v.Epoch, Len: 1<<32 - 1, Call: collective.Call{Kind: kind}}
					require.NoError(t, control.Write(deadline(t), &h, nil))
					want := collective.Header{Job: v.Job, Epoch: v.Epoch, Seq: 1, Call: collective.Call{Kind: collective.KindBarrier}}
					err := made.Recv(deadline(t), 1, &want, nil)
					var broken *collective.RankError
					require.ErrorAs(t, err, &broken)
					require.Equal(t, 1, broken.Rank)
					require.ErrorContains(t, err, fmt.Sprintf("it sent an invalid control frame of kind %#x and 4294967295 bytes", uint8(kind)))
				}), uint64(16<<20))
			}
		})
	}
}

// A message that is too short is noticed soon, although the sleeping receiver asked the
// kernel to wake it only for more bytes than will ever arrive.
func TestShortMessageWakesReceiver(t *testing.T) {
	v, made, bulk, _ := betray(t, noKey)
	g := collective.NewGroup(v, collective.OverTransport(v, made), collective.Options{})
	defer g.Close()
	short := collective.Header{Job: v.Job, Epoch: v.Epoch, Seq: 1, Call: collective.Call{Kind: collective.KindSend, DType: collective.Float32, Root: 1, Count: 1}, Len: 4}
	result := make(chan error, 1)
	go func() { result <- g.Recv(deadline(t), collective.Of(make([]float32, 1<<20)), 1) }()
	select { // give it time to fall asleep
	case err := <-result:
		require.Fail(t, "nothing was sent", "%v", err)
	case <-time.After(100 * time.Millisecond):
	}
	begin := time.Now()
	require.NoError(t, bulk.Write(deadline(t), &short, [][]byte{make([]byte, 4)}))
	err := <-result
	require.ErrorIs(t, err, collective.ErrMismatch)
	require.Less(t, time.Since(begin), 2*time.Second, "%v", err)
}

// Many silent connections do not keep a member out.
func TestManySilentConnections(t *testing.T) {
	nodes := listen(t, 2)
	var silent []net.Conn
	defer func() {
		for _, c := range silent {
			_ = c.Close()
		}
	}()
	connections := 200
	if collectivetest.Thorough() {
		connections = 1000
	}
	for range connections {
		for _, n := range nodes {
			c, err := (&net.Dialer{Timeout: time.Second}).DialContext(t.Context(), "tcp", n.addr().String())
			if err == nil {
				silent = append(silent, c)
			}
		}
	}
	begin := time.Now()
	gs := connect(t, nodes)
	t.Logf("connected after %v behind %d silent connections", time.Since(begin), len(silent))
	collectivetest.Run(t, gs, func(ctx context.Context, g *collective.Group) { assert.NoError(t, g.Barrier(ctx)) })
}
