package tcp_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/ringtrain/ringtrain/collective"
	"github.com/ringtrain/ringtrain/collective/collectivetest"
	"github.com/ringtrain/ringtrain/collective/secret"
	"github.com/ringtrain/ringtrain/collective/tcp"
)

// listenStreams is listenAs with the given number of streams.
func listenStreams(t testing.TB, n, streams int, prove func(tcp.Identity) *secret.Identity) []*node {
	nodes := listenAs(t, n, prove)
	for _, node := range nodes {
		node.connector.Streams = streams
	}
	return nodes
}

func streams(streams int, prove func(testing.TB) func(tcp.Identity) *secret.Identity) collectivetest.Maker {
	return func(t testing.TB, n int) []*collective.Group {
		return connect(t, listenStreams(t, n, streams, prove(t)))
	}
}

func noKeys(testing.TB) func(tcp.Identity) *secret.Identity { return noKey }

// A Transport that cuts messages, even short ones, into stripes passes the conformance
// suites.
func TestStreams(t *testing.T) {
	defer tcp.SetLeastStripe(256)()
	t.Run("2", func(t *testing.T) {
		collectivetest.Slow(t)
		collectivetest.TestGroup(t, streams(2, noKeys))
	})
	t.Run("4, TLS", func(t *testing.T) { collectivetest.TestGroup(t, streams(4, prover)) })
	t.Run("methods, 4", func(t *testing.T) {
		collectivetest.Slow(t)
		collectivetest.TestMethods(t, func(t testing.TB, n int) ([]collective.View, []collective.Transport) {
			return transports(t, listenStreams(t, n, 4, noKey))
		})
	})
	t.Run("flight, 4", func(t *testing.T) { collectivetest.TestFlight(t, streams(4, noKeys)) })
	t.Run("flight, 3, TLS", func(t *testing.T) { collectivetest.TestFlight(t, streams(3, prover)) })
	t.Run("allocations, 4", func(t *testing.T) { collectivetest.TestAllocations(t, streams(4, noKeys)) })
}

// A segment between hosts is long enough to be cut into one stripe for each of MaxStreams
// streams.
func TestAllStreamsAreUsed(t *testing.T) {
	nodes := listenStreams(t, 2, tcp.MaxStreams, noKey)
	vs, made := connectView(t, nodes, 1)
	for r := range vs {
		vs[r].Members = slices.Clone(vs[r].Members)
		vs[r].Members[1].Host++
	}
	groups := collectivetest.Groups(t, vs, []collective.Transport{made[0], made[1]}, collective.Options{})
	require.Equal(t, tcp.MaxStreams, groups[0].PlanAllReduce(collective.Of(make([]float32, 1<<20)), collective.Sum).Streams)
}

// If any stream between two ranks is lost during a call, every rank blames one of the two.
func TestLostStream(t *testing.T) {
	const n, streams = 3, 3
	defer tcp.SetLeastStripe(4 << 10)()
	for name, prove := range map[string]func(tcp.Identity) *secret.Identity{"no key": noKey, "TLS": prover(t)} {
		for stream := range streams {
			t.Run(fmt.Sprintf("%s, %d", name, stream), func(t *testing.T) {
				nodes := listenStreams(t, n, streams, prove)
				vs, made := connectView(t, nodes, 1)
				under := make([]collective.Transport, n)
				for r := range made {
					under[r] = made[r]
				}
				groups := collectivetest.Groups(t, vs, under, collective.Options{})
				var cut sync.Once
				collectivetest.Run(t, groups, func(ctx context.Context, g *collective.Group) {
					s := make([]float32, 1<<20)
					for call := range 10_000 {
						if call == 3+stream && g.Rank() == 0 {
							cut.Do(func() { go made[1].KillStream(0, stream) }) // during calls
						}
						begin := time.Now()
						err := collective.AllReduce(ctx, g, s, collective.Sum)
						if err == nil {
							continue
						}
						var lost *collective.RankError
						if assert.ErrorAs(t, err, &lost, "rank %d", g.Rank()) {
							assert.Contains(t, []int{0, 1}, lost.Rank, "rank %d: %v", g.Rank(), err)
							assert.ErrorIs(t, err, collective.ErrLost)
							assert.Less(t, time.Since(begin), 3*time.Second)
						}
						return
					}
				})
			})
		}
	}
}

// Connecting ranks with different numbers of streams fails on both, whichever comes first,
// and the error says what to do.
func TestStreamsDiffer(t *testing.T) {
	for _, first := range []int{0, 1} {
		nodes := listenStreams(t, 2, 2, noKey)
		nodes[1].connector.Streams = 4
		vs := views(nodes, 1)
		var all sync.WaitGroup
		for _, r := range []int{first, 1 - first} {
			all.Go(func() {
				_, err := nodes[r].connector.Connect(deadline(t), vs[r])
				var differs *collective.RankError
				if assert.ErrorAs(t, err, &differs) {
					assert.Equal(t, "connect", differs.Phase)
					assert.ErrorContains(t, err, "give all ranks the same --streams")
				}
			})
		}
		all.Wait()
	}
	nodes := listenStreams(t, 1, tcp.MaxStreams+1, noKey)
	_, err := nodes[0].connector.Connect(deadline(t), views(nodes, 1)[0])
	require.ErrorContains(t, err, "Streams must be 1 to 8")
}

// Close and Abort end a Send and a Recv of stripes at any moment, and leave no descriptor
// open.
func TestEndDuringStripes(t *testing.T) {
	for name, prove := range map[string]func(tcp.Identity) *secret.Identity{"no key": noKey, "TLS": prover(t)} {
		t.Run(name, func(t *testing.T) {
			nodes := listenStreams(t, 2, 4, prove)
			var before int
			for round := range uint64(16) {
				vs, made := connectView(t, nodes, 1+round)
				if round == 0 {
					before = openFiles(t)
				}
				payload, into := make([]byte, 8<<20), make([]byte, 1<<20)
				var sent, got error
				var all sync.WaitGroup
				all.Go(func() {
					for seq := uint64(1); sent == nil; seq++ {
						sent = made[0].Send(context.Background(), 1, message(vs[0], seq, payload), [][]byte{payload})
					}
				})
				all.Go(func() { got = made[0].Recv(context.Background(), 1, message(vs[0], 1, into), [][]byte{into}) })
				select {
				case <-time.After(time.Duration(round%8) * time.Millisecond):
				case <-t.Context().Done():
				}
				cause := error(collective.ErrClosed)
				if round%2 == 0 {
					cause = errors.New("enough")
					made[0].Abort(&collective.RankError{Rank: 0, Phase: "failed", Err: cause})
				} else {
					require.NoError(t, made[0].Close())
				}
				all.Wait()
				require.ErrorIs(t, sent, cause)
				require.ErrorIs(t, got, cause)
				require.NoError(t, made[0].Close())
				require.NoError(t, made[1].Close())
			}
			require.LessOrEqual(t, openFiles(t), before)
		})
	}
}
