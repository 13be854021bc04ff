package collective_test

import (
	"context"
	"errors"
	"math"
	"runtime"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/ringtrain/ringtrain/collective"
	"github.com/ringtrain/ringtrain/collective/collectivetest"
)

// Two ranks that disagree about the length of a message detect it, even if the
// difference is a whole number of messages.
func TestAllToAllVCountsAreCompared(t *testing.T) {
	collectivetest.Ranks(t, 2, func(ctx context.Context, g *collective.Group) {
		const n = 64 << 10 // float32 of one message
		sends, recvs := []int{0, 2 * n}, []int{0, 0}
		if g.Rank() == 1 {
			sends, recvs = []int{0, 0}, []int{n, 0}
		}
		src, dst := make([]float32, sends[0]+sends[1]), make([]float32, recvs[0]+recvs[1])
		err := g.AllToAllV(ctx, collective.Of(dst), collective.Of(src), sends, recvs)
		if err == nil {
			err = g.Barrier(ctx)
		}
		assert.ErrorIs(t, err, collective.ErrMismatch)
	})
	collectivetest.Ranks(t, 2, func(ctx context.Context, g *collective.Group) {
		v := []collective.Vector{collective.Of([]float32{1, 2})}
		dst, src := [][]collective.Vector{nil, nil}, [][]collective.Vector{nil, v}
		if g.Rank() == 1 {
			dst, src = [][]collective.Vector{{v[0], collective.Of([]float32{3, 4})}, nil}, [][]collective.Vector{nil, nil}
		}
		w, err := collective.NewAllToAllW(g, collective.Float32, dst, src)
		assert.NoError(t, err)
		if err = w.Call(ctx); err == nil {
			err = g.Barrier(ctx)
		}
		assert.ErrorIs(t, err, collective.ErrMismatch, "AllToAllW")
	})
}

// What a rank sends itself in an AllToAllV must be what it receives from itself.
func TestAllToAllVRefusesUnequalOwnCounts(t *testing.T) {
	g := collectivetest.Local(t, 1)[0]
	err := g.AllToAllV(t.Context(), collective.Of(make([]float32, 2)), collective.Of(make([]float32, 3)), []int{3}, []int{2})
	require.EqualError(t, err, "collective: AllToAllV: rank 0 sends itself 3 elements and receives 2: sends[0] and recvs[0] must be equal")
	require.NoError(t, g.Err(), "a mistake in the arguments breaks nothing")
}

// Counts whose sum overflows could otherwise pass as those of a short vector.
func TestCountsThatOverflow(t *testing.T) {
	g := collectivetest.Local(t, 3)[0]
	two, most := collective.Of(make([]float32, 2)), []int{math.MaxInt, math.MaxInt, 4}
	require.ErrorContains(t, g.AllToAllV(t.Context(), two, collective.Of(make([]float32, 1)), []int{1, 0, 0}, most), "their sum overflows an int")
	require.ErrorContains(t, g.AllGatherV(t.Context(), two, two, most), "their sum overflows an int")
	require.ErrorContains(t, g.ReduceScatterV(t.Context(), two, two, most, collective.Sum), "their sum overflows an int")
}

// The zero Vector has no memory, so errors do not say that it is on a device.
func TestZeroVectorIsNowhere(t *testing.T) {
	require.Equal(t, "dtype(0)[0]", collective.Vector{}.String())
}

// The pieces of an AllToAllW must have its type, and be in host memory.
func TestAllToAllWRefuses(t *testing.T) {
	g := collectivetest.Local(t, 1)[0]
	one, two, other := []collective.Vector{collective.Of([]float32{1})}, collective.Of([]float32{1, 2}), []collective.Vector{collective.Of([]int32{1})}
	for want, c := range map[string]struct {
		t        collective.DType
		dst, src [][]collective.Vector
	}{
		"pass a list of vectors for each of 1 ranks": {collective.Float32, nil, [][]collective.Vector{one}},
		"is not an element type":                     {0, [][]collective.Vector{one}, [][]collective.Vector{one}},
		"of int32[1] with rank 0":                    {collective.Float32, [][]collective.Vector{one}, [][]collective.Vector{other}},
		"of float32[1] on device 2 with rank 0":      {collective.Float32, [][]collective.Vector{one}, [][]collective.Vector{{collective.OnDevice(2, 64, 1, collective.Float32)}}},
		"rank 0 sends itself 4 bytes and receives 8": {collective.Float32, [][]collective.Vector{{two.Slice(0, 1), two.Slice(1, 2)}}, [][]collective.Vector{one}},
		"float32[1] and float32[1] share memory":     {collective.Float32, [][]collective.Vector{one}, [][]collective.Vector{one}},
		"float32[2] and float32[1] at 1 share":       {collective.Float32, [][]collective.Vector{{two, two.Slice(1, 2)}}, [][]collective.Vector{one}},
	} {
		_, err := collective.NewAllToAllW(g, c.t, c.dst, c.src)
		require.ErrorContains(t, err, want)
	}
}

// A reduction may have more elements than the largest offset.
func TestReductionsOfManyElements(t *testing.T) {
	g := collectivetest.Local(t, 1)[0]
	many := collective.OnDevice(0, 64, math.MaxInt, collective.Uint8)
	require.ErrorIs(t, g.AllReduce(t.Context(), many, collective.Sum), collective.ErrUnsupported, "only its memory is refused")
	err := g.AllReduce(t.Context(), many.At(-1), collective.Sum)
	require.ErrorContains(t, err, "its offset in the arena must be 0 to 4294967295")
}

// Memory that the engine cannot reach is refused before anything is sent, in either vector.
func TestUnreachableMemory(t *testing.T) {
	g := collectivetest.Local(t, 1)[0]
	here, there := collective.Of(make([]float32, 2)), collective.OnDevice(1, 64, 2, collective.Float32)
	for name, call := range map[string]func(dst, src collective.Vector) error{
		"AllGather": func(dst, src collective.Vector) error { return g.AllGather(t.Context(), dst, src) },
		"AllGatherAsync": func(dst, src collective.Vector) error {
			return g.AllGatherAsync(t.Context(), dst, src).Wait(t.Context())
		},
		"ReduceScatter": func(dst, src collective.Vector) error { return g.ReduceScatter(t.Context(), dst, src, collective.Sum) },
		"Gather":        func(dst, src collective.Vector) error { return g.Gather(t.Context(), dst, src, 0) },
		"Scatter":       func(dst, src collective.Vector) error { return g.Scatter(t.Context(), dst, src, 0) },
		"AllToAll":      func(dst, src collective.Vector) error { return g.AllToAll(t.Context(), dst, src) },
	} {
		require.ErrorIs(t, call(there, here), collective.ErrUnsupported, name)
		require.ErrorIs(t, call(here, there), collective.ErrUnsupported, name)
	}
	require.NoError(t, g.Err(), "a mistake in the arguments breaks nothing")
}

// If a rank gives up a call that waits for asynchronous ones, the others get an error,
// because they would miss it.
func TestGivingUpIsTold(t *testing.T) {
	groups := collectivetest.Local(t, 2)
	work := groups[0].AllReduceAsync(context.Background(), collective.Of([]float32{1}), collective.Sum)
	ctx, cancel := context.WithCancelCause(context.Background())
	cancel(errors.New("no more patience"))
	err := groups[0].Barrier(ctx)
	var gone *collective.RankError
	require.ErrorAs(t, err, &gone)
	require.Equal(t, "cancelled", gone.Phase)
	require.Equal(t, collective.KindBarrier, gone.Op.Kind)
	require.Equal(t, err, groups[0].Err(), "it breaks the group as any other call does")
	require.Error(t, work.Wait(context.Background()))
	require.ErrorContains(t, groups[1].Barrier(context.Background()), "no more patience")
}

// A call that waits for room in a full queue ends with its context.
func TestFullQueueObeysTheContext(t *testing.T) {
	g := collectivetest.Local(t, 2)[0] // the other rank makes no calls
	ctx, cancel := context.WithTimeout(context.Background(), 50*time.Millisecond)
	defer cancel()
	var last *collective.Work
	for range 300 {
		last = g.AllReduceAsync(ctx, collective.Of([]float32{1}), collective.Sum)
	}
	var gone *collective.RankError
	require.ErrorAs(t, last.Wait(context.Background()), &gone)
	require.Equal(t, collective.KindAllReduce, gone.Op.Kind)
	require.NotEmpty(t, gone.Node)
	require.ErrorAs(t, g.Err(), &gone)
}

// A rank does not send to itself.
func TestSendToItself(t *testing.T) {
	g := collectivetest.Local(t, 2)[0]
	v := collective.Of([]float32{1})
	ctx, cancel := context.WithCancel(t.Context())
	cancel() // a call that is made does not wait
	require.ErrorContains(t, g.Send(ctx, v, 0), "use two different ranks from 0 to 1")
	require.ErrorContains(t, g.Recv(ctx, v, 0), "use two different ranks from 0 to 1")
	require.NoError(t, g.Err(), "a mistake in the arguments breaks nothing")
}

func TestRingOfOne(t *testing.T) {
	collectivetest.Ranks(t, 1, func(ctx context.Context, g *collective.Group) {
		dst := make([]float64, 2)
		assert.NoError(t, g.SendRecv(ctx, collective.Of(dst), 0, collective.Of([]float64{1, 2}), 0))
		assert.Equal(t, []float64{1, 2}, dst)
	})
}

func TestSubOrdersByKey(t *testing.T) {
	keys := []int{math.MaxInt, -2, 0}
	collectivetest.Ranks(t, 3, func(ctx context.Context, g *collective.Group) {
		sub, err := g.Sub(ctx, 0, keys[g.Rank()])
		if assert.NoError(t, err) {
			assert.Equal(t, []int{2, 0, 1}[g.Rank()], sub.Rank())
			assert.NoError(t, sub.Close())
		}
	})
}

// If a group breaks, its sub-groups break too, including one of a single rank.
func TestSubBreaksWithTheWhole(t *testing.T) {
	collectivetest.Ranks(t, 2, func(ctx context.Context, g *collective.Group) {
		sub, err := g.Sub(ctx, g.Rank(), 0)
		if !assert.NoError(t, err) {
			return
		}
		assert.NoError(t, sub.Barrier(ctx))
		g.Abort(errors.New("out of paper"))
		assert.ErrorContains(t, sub.Barrier(ctx), "out of paper")
		assert.NoError(t, sub.Close())
	})
}

// Closing a sub-group ends its call in progress.
func TestSubClosesDuringACall(t *testing.T) {
	groups := collectivetest.Local(t, 2)
	subs := make([]*collective.Group, 2)
	collectivetest.Run(t, groups, func(ctx context.Context, g *collective.Group) {
		var err error
		subs[g.Rank()], err = g.Sub(ctx, 0, 0)
		assert.NoError(t, err)
	})
	errs := make(chan error, 2)
	for range 2 {
		go func() { errs <- subs[0].Barrier(context.Background()) }()
	}
	require.ErrorIs(t, <-errs, collective.ErrConcurrent)
	for f := subs[0].Flight(); f.InProgress() == nil; f = subs[0].Flight() {
		runtime.Gosched() // the other call has begun, but may not have come far
	}
	require.NoError(t, subs[0].Close())
	require.ErrorIs(t, <-errs, collective.ErrClosed)
	require.ErrorIs(t, subs[1].Barrier(context.Background()), collective.ErrClosed, "it gets the error")
	require.NoError(t, subs[1].Close())
}
