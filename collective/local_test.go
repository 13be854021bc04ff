package collective_test

import (
	"context"
	"errors"
	"runtime"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/ringtrain/ringtrain/collective"
	"github.com/ringtrain/ringtrain/collective/collectivetest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestLocalGroup(t *testing.T) { collectivetest.TestGroup(t, collectivetest.Local) }

func TestLocalMethods(t *testing.T) {
	collectivetest.TestMethods(t, func(_ testing.TB, n int) ([]collective.View, []collective.Transport) { return collective.Local(n) })
}

// messages hides the abilities of the in-process transport. What is left is a Transport
// that does only what it must.
type messages struct{ collective.Transport }

func byMessages(_ testing.TB, n int) ([]collective.View, []collective.Transport) {
	views, transports := collective.Local(n)
	for r := range transports {
		transports[r] = messages{transports[r]}
	}
	return views, transports
}

func TestLocalMessages(t *testing.T) {
	collectivetest.TestGroup(t, func(t testing.TB, n int) []*collective.Group {
		views, transports := byMessages(t, n)
		return collectivetest.Groups(t, views, transports, collective.Options{})
	})
}

// A rank alone neither copies its vector nor allocates memory for a copy.
func TestAllReduceAlone(t *testing.T) {
	views, transports := byMessages(t, 1)
	g := collectivetest.Groups(t, views, transports, collective.Options{})[0]
	v := make([]float32, 1<<20)
	v[7] = 3
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	require.NoError(t, collective.AllReduce(t.Context(), g, v, collective.Sum))
	runtime.ReadMemStats(&after)
	require.Equal(t, float32(3), v[7])
	require.Less(t, after.TotalAlloc-before.TotalAlloc, uint64(len(v)))
}

// Ranks of different hosts send ahead of what they receive, and Sends of this
// transport wait for the receiver.
func TestFarHosts(t *testing.T) {
	collectivetest.TestMethods(t, func(_ testing.TB, n int) ([]collective.View, []collective.Transport) {
		views, transports := collective.Local(n)
		for r := range views {
			views[r].Members = slices.Clone(views[r].Members)
			for i := range views[r].Members {
				views[r].Members[i].Host = collective.HostID(i + 1)
			}
		}
		return views, transports
	})
}

// If a rank makes no call, all others name it at the deadline.
func TestDeadlineNamesWhoDidNotCall(t *testing.T) {
	views, transports := collective.Local(2)
	groups := collectivetest.Groups(t, views, transports, collective.Options{Deadline: 20 * time.Millisecond})
	err := groups[0].Barrier(context.Background())
	var late *collective.RankError
	require.ErrorAs(t, err, &late)
	require.Equal(t, 1, late.Rank)
	require.Equal(t, "not called", late.Phase)
	require.ErrorIs(t, err, collective.ErrLate)
	require.ErrorIs(t, groups[1].Barrier(context.Background()), collective.ErrLate, "it gets the error")
}

// If the deadline passed before a call, no other rank is to blame, even one that has made fewer calls.
func TestDeadlineBeforeTheCall(t *testing.T) {
	views, transports := collective.Local(3)
	groups := collectivetest.Groups(t, views, transports, collective.Options{})
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(context.DeadlineExceeded)
	for _, r := range []int{1, 0, 2} {
		err := groups[r].Barrier(ctx)
		var culprit *collective.RankError
		require.ErrorAs(t, err, &culprit)
		require.Equal(t, 1, culprit.Rank)
		require.Equal(t, "cancelled", culprit.Phase)
		require.EqualValues(t, 1, culprit.Seq)
		require.ErrorContains(t, err, "deadline exceeded")
	}
}

// After Close, the error of an asynchronous call says which call failed, as that of any call.
func TestAsyncAfterClose(t *testing.T) {
	g := collectivetest.Local(t, 1)[0]
	require.NoError(t, g.Close())
	err := g.AllReduceAsync(t.Context(), collective.Of([]int64{1}), collective.Sum).Wait(t.Context())
	require.ErrorIs(t, err, collective.ErrClosed)
	require.EqualError(t, err, "collective: AllReduce(int64[1], sum) on rank 0: closed")
}

type journal struct {
	calls []collective.Call
	steps []uint64
	errs  []error
}

func (j *journal) Called(c collective.Call, seq, step uint64, took time.Duration, err error) {
	j.calls, j.steps, j.errs = append(j.calls, c), append(j.steps, step), append(j.errs, err)
}

func TestObserverSeesEveryCall(t *testing.T) {
	views, transports := collective.Local(1)
	var j journal
	g := collectivetest.Groups(t, views, transports, collective.Options{Observer: &j})[0]
	ctx := context.Background()
	require.NoError(t, g.Barrier(ctx))
	g.Mark(7)
	require.NoError(t, collective.AllReduce(ctx, g, []int64{1}, collective.Sum))
	require.Len(t, j.calls, 2)
	require.Equal(t, []uint64{0, 7}, j.steps)
	require.Equal(t, "AllReduce(int64[1], sum)", j.calls[1].String())
	require.NoError(t, j.errs[1])
}

// Repeated calls allocate nothing, however long the vector is.
func TestAllocations(t *testing.T) { collectivetest.TestAllocations(t, collectivetest.Local) }

func BenchmarkAllReduce(b *testing.B) { collectivetest.BenchmarkAllReduce(b, collectivetest.Local) }

func TestVector(t *testing.T) {
	s := []float64{0, 1, 2, 3, 4}
	v := collective.Of(s).At(100)
	require.Equal(t, "float64[5] at 100", v.String())
	part := v.Slice(2, 4)
	require.Equal(t, 102, part.Arena())
	require.Equal(t, 16, part.Bytes())
	b, ok := part.Host()
	require.True(t, ok)
	b[7] = 0x40 // 2.0 is 0x4000000000000000
	require.Equal(t, []float64{0, 1, 2, 3, 4}, s, "the memory is shared, and this byte was 0x40")
	b[6] = 8
	require.Equal(t, 3.0, s[2])
	require.Panics(t, func() { v.Slice(3, 6) })

	device, addr, ok := collective.OnDevice(1, 0x1000, 8, collective.Float32).Slice(2, 8).Device()
	require.True(t, ok)
	require.Equal(t, 1, device)
	require.EqualValues(t, 0x1008, addr)
	_, _, ok = v.Device()
	require.False(t, ok)
	_, ok = collective.Of([]uint8(nil)).Host()
	require.True(t, ok)
}

// A group of one hears of no failures from others, but still obeys its own Abort.
func TestGroupOfOneObeys(t *testing.T) {
	group := func() *collective.Group {
		views, transports := collective.Local(1)
		return collectivetest.Groups(t, views, transports, collective.Options{})[0]
	}
	g := group()
	require.NoError(t, g.Barrier(context.Background()))
	g.Abort(errors.New("the disk is full"))
	require.ErrorContains(t, g.Barrier(context.Background()), "the disk is full")

	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	require.ErrorIs(t, group().Barrier(ctx), context.Canceled)
}

// A sender waits for its receiver, so it learns at once that the receiver refused the
// message.
func TestRefusedMessageIsAnErrorOnBothSides(t *testing.T) {
	collectivetest.Ranks(t, 2, func(ctx context.Context, g *collective.Group) {
		v := collective.Of(make([]float32, 4-g.Rank()))
		var err error
		if g.Rank() == 0 {
			err = g.Send(ctx, v, 1)
		} else {
			err = g.Recv(ctx, v, 0)
		}
		assert.ErrorIs(t, err, collective.ErrMismatch)
		assert.ErrorContains(t, err, "rank 0 called Send(float32[4], from 0 to 1) #1, rank 1 called Recv(float32[3], from 0 to 1) #1: a Send and its Recv must agree in type and length")
	})
}

// The error for pieces that differ says what the pair of ranks disagrees about.
func TestPiecesOfAllToAllVDiffer(t *testing.T) {
	collectivetest.Ranks(t, 2, func(ctx context.Context, g *collective.Group) {
		sends, recvs := []int{1, 2}, []int{1, 1}
		if g.Rank() == 1 {
			sends, recvs = []int{1, 1}, []int{3, 1}
		}
		err := g.AllToAllV(ctx, collective.Of(make([]float32, recvs[0]+recvs[1])), collective.Of(make([]float32, sends[0]+sends[1])), sends, recvs)
		if g.Rank() == 1 {
			assert.ErrorContains(t, err, "rank 0 sends 2 elements to rank 1 in AllToAll #1, but rank 1 expects 3")
		}
	})
}

// A rank that has closed its end learns that, even if another has noticed it before and broken
// the job.
func TestLocalClosedFirst(t *testing.T) {
	_, ends := collective.Local(2)
	require.NoError(t, ends[0].Close())
	h := &collective.Header{Seq: 1, Call: collective.Call{Kind: collective.KindBarrier}}
	require.ErrorIs(t, ends[1].Recv(t.Context(), 0, h, nil), collective.ErrLeft)
	require.Equal(t, collective.ErrClosed, ends[0].Recv(t.Context(), 1, h, nil))
	require.NoError(t, ends[1].Close())
}
