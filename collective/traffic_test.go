package collective_test

import (
	"bytes"
	"context"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/ringtrain/ringtrain/collective"
	"github.com/ringtrain/ringtrain/collective/collectivetest"
	"github.com/ringtrain/ringtrain/collective/schedule"
)

// A scale is a Transport that counts the bytes it is given. Sending never waits for the
// receiver, as on a network with large buffers.
type scale struct {
	collective.Transport
	messages, payload atomic.Int64
	queue             chan func() error
	sent              sync.WaitGroup
	err               atomic.Pointer[error]
}

var (
	_ collective.Able   = (*scale)(nil)
	_ collective.Poster = (*scale)(nil)
)

func newScale(t collective.Transport) *scale {
	s := &scale{Transport: t, queue: make(chan func() error, 10_000)}
	go func() {
		for send := range s.queue {
			if err := send(); err != nil {
				s.err.CompareAndSwap(nil, &err)
			}
			s.sent.Done()
		}
	}()
	return s
}

func (s *scale) Abilities() collective.Abilities { return collective.Abilities{Post: s} }

func (s *scale) Post(to int, h *collective.Header, parts [][]byte) error {
	header, payload := *h, bytes.Join(parts, nil)
	s.messages.Add(1)
	s.payload.Add(int64(len(payload)))
	s.sent.Add(1)
	s.queue <- func() error { return s.Send(context.Background(), to, &header, [][]byte{payload}) }
	return nil
}

func (s *scale) Flush(context.Context) error {
	s.sent.Wait()
	if err := s.err.Load(); err != nil {
		return *err
	}
	return nil
}

func (s *scale) Close() error {
	defer close(s.queue)
	return s.Transport.Close()
}

// weighed makes groups over scales, with pairs of ranks on a host. m forces a method; 0
// leaves the choice to the plan.
func weighed(t *testing.T, n int, m schedule.Method) ([]*collective.Group, []*scale) {
	views, transports := collective.Local(n)
	scales, engines := make([]*scale, n), make([]collective.Engine, n)
	for r := range n {
		views[r].Members = slices.Clone(views[r].Members)
		for i := range views[r].Members {
			views[r].Members[i].Host = collective.HostID(1 + i/2)
		}
		scales[r] = newScale(transports[r])
		engines[r] = collective.ByMethod(views[r], scales[r], m)
	}
	return collectivetest.OverEngines(t, views, engines, collective.Options{Order: collective.AnyOrder}), scales
}

// Traffic equals the bytes that the transport is given, for every call.
func TestTrafficIsWhatIsSent(t *testing.T) {
	for name, call := range map[string]call{
		"AllReduce": reduce(100_000),
		"AllGather": gather(20_001),
		"Broadcast": broadcast(1),
		"Barrier":   barrier,
		"AllToAll": func(ctx context.Context, g *collective.Group) error {
			return g.AllToAll(ctx, collective.Of(make([]int32, 1000*g.Size())), collective.Of(make([]int32, 1000*g.Size())))
		},
		"ring": func(ctx context.Context, g *collective.Group) error {
			up, down := schedule.Up(g.Rank(), g.Size()), schedule.Down(g.Rank(), g.Size())
			return g.SendRecv(ctx, collective.Of(make([]int32, 70_000)), down, collective.Of(make([]int32, 70_000)), up)
		},
	} {
		t.Run(name, func(t *testing.T) {
			groups, scales := weighed(t, 5, 0)
			for range 2 {
				collectivetest.Run(t, groups, func(ctx context.Context, g *collective.Group) { assert.NoError(t, call(ctx, g)) })
				for r, g := range groups {
					require.Equal(t, collective.Traffic{Messages: scales[r].messages.Load(), Payload: scales[r].payload.Load()}, g.Traffic())
				}
			}
			require.Positive(t, groups[0].Traffic().Bytes())
		})
	}
}

// The bytes that schedule.Plan predicts equal the bytes that all ranks send.
func TestTrafficIsAsPlanned(t *testing.T) {
	const n = 30_000
	for _, m := range []schedule.Method{schedule.OneShot, schedule.Bruck, schedule.Collected, schedule.Direct, schedule.Ring, schedule.Halving, schedule.Tree, schedule.Hierarchical} {
		for _, size := range []int{1, 2, 5, 6, 8} {
			t.Run(fmt.Sprintf("%v, size %d", m, size), func(t *testing.T) {
				groups, _ := weighed(t, size, m)
				plan := groups[0].PlanAllReduce(collective.Of(make([]float32, n)), collective.Sum)
				collectivetest.Run(t, groups, func(ctx context.Context, g *collective.Group) { assert.NoError(t, reduce(n)(ctx, g)) })
				require.EqualValues(t, plan.Sent(size, 4*n), payload(groups)/int64(size))
				before := payload(groups)
				collectivetest.Run(t, groups, func(ctx context.Context, g *collective.Group) { assert.NoError(t, gather(n)(ctx, g)) })
				require.EqualValues(t, schedule.Gathered(size, 4*n), (payload(groups)-before)/int64(size))
			})
		}
	}
}

func payload(groups []*collective.Group) (sum int64) {
	for _, g := range groups {
		sum += g.Traffic().Payload
	}
	return sum
}

// Ranks that share memory send no messages. Traffic counts what they read of each
// other.
func TestTrafficOfSharedMemory(t *testing.T) {
	groups := collectivetest.Local(t, 4)
	collectivetest.Run(t, groups, func(ctx context.Context, g *collective.Group) {
		assert.NoError(t, reduce(1000)(ctx, g))
		assert.NoError(t, gather(10)(ctx, g))
		assert.NoError(t, barrier(ctx, g))
	})
	before := groups[1].Traffic()
	require.Equal(t, collective.Traffic{Shared: 2*3*4000/4 + 3*40}, before)
	collectivetest.Run(t, groups, func(ctx context.Context, g *collective.Group) {
		assert.NoError(t, g.Broadcast(ctx, collective.Of(make([]int32, 8)), 0))
		assert.NoError(t, g.AllToAll(ctx, collective.Of(make([]int32, 16)), collective.Of(make([]int32, 16))))
		assert.NoError(t, g.ReduceScatter(ctx, collective.Of(make([]int32, 4)), collective.Of(make([]int32, 16)), collective.Sum))
		assert.NoError(t, g.Reduce(ctx, collective.Of(make([]int32, 8)), collective.Of(make([]int32, 8)), collective.Sum, 1))
		assert.NoError(t, g.Gather(ctx, collective.Of(make([]int32, 16)), collective.Of(make([]int32, 4)), 2))
		assert.NoError(t, g.Scatter(ctx, collective.Of(make([]int32, 4)), collective.Of(make([]int32, 16)), 3))
	})
	small := groups[1].Traffic()
	require.Equal(t, collective.Traffic{Shared: before.Shared + 3*(32+64+64+32+16+16)/4}, small)
	collectivetest.Run(t, groups, func(ctx context.Context, g *collective.Group) {
		assert.NoError(t, g.Broadcast(ctx, collective.Of(make([]byte, collective.ExchangeBytes+1)), 0))
	})
	require.Equal(t, small.Shared, groups[1].Traffic().Shared)
	require.Positive(t, groups[1].Traffic().Messages)
}
