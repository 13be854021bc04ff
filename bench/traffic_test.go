package bench_test

import (
	"bytes"
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/ringtrain/ringtrain/bench"
	"github.com/ringtrain/ringtrain/collective"
)

// A scale is a Transport that counts the bytes sent. As on a network with large
// buffers, sending never waits for the receiver.
type scale struct {
	collective.Transport
	bytes atomic.Int64
	queue chan func() error
	sent  sync.WaitGroup
	err   atomic.Pointer[error]
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
	s.bytes.Add(int64(bench.HeaderBytes + len(payload)))
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

// weigh makes n ranks make calls, and returns what each sent, by the count under test
// and by the scale.
func weigh(t require.TestingT, n int, far bool, calls func(ctx context.Context, g *collective.Group) error) (counted, weighed []int64) {
	views, transports := collective.Local(n)
	errs := make(chan error, n)
	counted, weighed = make([]int64, n), make([]int64, n)
	groups := make([]*collective.Group, n)
	for r := range n {
		if far {
			for i := range views[r].Members {
				views[r].Members[i].Host = collective.HostID(i + 1)
			}
		}
		s, traffic := newScale(transports[r]), &bench.Traffic{}
		groups[r] = collective.NewGroup(views[r], collective.OverTransport(views[r], s), collective.Options{Observer: traffic})
		go func() {
			err := calls(context.Background(), groups[r])
			known := true
			counted[r], known = traffic.Sent(views[r])
			if err == nil && !known {
				err = fmt.Errorf("a call is not known")
			}
			weighed[r] = s.bytes.Load()
			close(s.queue)
			errs <- err
		}()
	}
	for range n {
		require.NoError(t, <-errs)
	}
	for _, g := range groups {
		require.NoError(t, g.Close())
	}
	return counted, weighed
}

// The bytes derived from the calls are exactly those that the transport gets: for every
// operation that training uses, any size and any piece of an arena, on one host and on
// several.
func TestTrafficIsWhatIsSent(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.IntRange(1, 6).Draw(t, "ranks")
		far := rapid.Bool().Draw(t, "far")
		count := rapid.OneOf(rapid.IntRange(0, 300), rapid.IntRange(4000, 9000), rapid.IntRange(20_000, 300_000)).Draw(t, "count")
		at := rapid.IntRange(0, 10_000).Draw(t, "at")
		root := rapid.IntRange(0, n-1).Draw(t, "root")
		kind := rapid.SampledFrom([]string{"allreduce", "gather", "broadcast", "barrier", "mean of int64"}).Draw(t, "kind")
		times := rapid.IntRange(1, 2).Draw(t, "times")
		counted, weighed := weigh(t, n, far, func(ctx context.Context, g *collective.Group) error {
			for range times {
				var err error
				switch kind {
				case "allreduce":
					err = g.AllReduce(ctx, collective.Of(make([]float32, count)).At(at), collective.Sum)
				case "gather":
					err = collective.AllGather(ctx, g, make([]int64, count*n), make([]int64, count))
				case "broadcast":
					err = collective.Broadcast(ctx, g, make([]float32, count), root)
				case "barrier":
					err = g.Barrier(ctx)
				default:
					err = collective.AllReduce(ctx, g, make([]int64, count), collective.Mean)
				}
				if err != nil {
					return err
				}
			}
			return nil
		})
		require.Equal(t, weighed, counted)
	})
}

// A call whose messages cannot be derived is reported, and a failed one does not count.
func TestTrafficKnowsItsLimits(t *testing.T) {
	views, _ := collective.Local(2)
	var traffic bench.Traffic
	traffic.Called(collective.Call{Kind: collective.KindAllToAll, DType: collective.Float32, Count: 4}, 1, 0, 0, nil)
	_, known := traffic.Sent(views[0])
	require.False(t, known)
	traffic.Reset()
	traffic.Called(collective.Call{Kind: collective.KindBarrier}, 2, 0, 0, context.Canceled)
	sent, known := traffic.Sent(views[0])
	require.True(t, known)
	require.Zero(t, sent)
}
