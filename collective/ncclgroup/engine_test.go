package ncclgroup

import (
	"context"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/ringtrain/ringtrain/collective"
	"github.com/ringtrain/ringtrain/collective/collectivetest"
	"github.com/ringtrain/ringtrain/cuda"
	"github.com/ringtrain/ringtrain/nccl"
)

// vector returns n float64 elements at an address of device 0.
func vector(addr uintptr, n int) collective.Vector {
	return collective.OnDevice(0, addr, n, collective.Float64)
}

func TestCommands(t *testing.T) {
	const dst, src = 0x10000, 0x20000
	type list = []nccl.Command
	for _, c := range []struct {
		name     string
		call     collective.Call
		dst, src int
		counts   []int
		want     list
	}{
		{"AllReduce", collective.Call{Kind: collective.KindAllReduce, Op: collective.Mean}, 5, 5, nil, list{
			{Kind: nccl.KindAllReduce, Op: nccl.Avg, Send: src, Recv: dst, Count: 5},
		}},
		{"nothing", collective.Call{Kind: collective.KindAllReduce, Op: collective.Sum}, 0, 0, nil, nil},
		{"ReduceScatter counts what one rank gets", collective.Call{Kind: collective.KindReduceScatter, Op: collective.Max}, 2, 6, nil, list{
			{Kind: nccl.KindReduceScatter, Op: nccl.Max, Send: src, Recv: dst, Count: 2},
		}},
		{"AllGatherV leaves out ranks that give nothing", collective.Call{Kind: collective.KindAllGather}, 5, 2, []int{3, 2, 0}, list{
			{Kind: nccl.KindBroadcast, Peer: 0, Send: src, Recv: dst, Count: 3},
			{Kind: nccl.KindBroadcast, Peer: 1, Send: src, Recv: dst + 3*8, Count: 2},
		}},
		{"Gather here", collective.Call{Kind: collective.KindGather, Root: 1}, 6, 2, nil, list{
			{Kind: nccl.KindSend, Peer: 1, Send: src, Count: 2},
			{Kind: nccl.KindRecv, Peer: 0, Recv: dst, Count: 2},
			{Kind: nccl.KindRecv, Peer: 1, Recv: dst + 2*8, Count: 2},
			{Kind: nccl.KindRecv, Peer: 2, Recv: dst + 4*8, Count: 2},
		}},
		{"Scatter from elsewhere", collective.Call{Kind: collective.KindScatter, Root: 2}, 2, 6, nil, list{
			{Kind: nccl.KindRecv, Peer: 2, Recv: dst, Count: 2},
		}},
		{"AllToAllV", collective.Call{Kind: collective.KindAllToAll}, 3, 4, []int{1, 0, 3, 0, 2, 1}, list{
			{Kind: nccl.KindSend, Peer: 0, Send: src, Count: 1},
			{Kind: nccl.KindSend, Peer: 2, Send: src + 8, Count: 3},
			{Kind: nccl.KindRecv, Peer: 1, Recv: dst, Count: 2},
			{Kind: nccl.KindRecv, Peer: 2, Recv: dst + 2*8, Count: 1},
		}},
		{"Send", collective.Call{Kind: collective.KindSend, Root: 1, Offset: 2}, 4, 4, nil, list{
			{Kind: nccl.KindSend, Peer: 2, Send: src, Count: 4},
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			c.call.DType = collective.Float64
			for i := range c.want {
				c.want[i].Type = nccl.Float64
			}
			s := &started{Header: collective.Header{Call: c.call}, Dst: vector(dst, c.dst), Src: vector(src, c.src), Counts: c.counts}
			require.Equal(t, c.want, seat{1, 3}.commands(s))
		})
	}
}

// NCCL has every type and reduction of a Group.
func TestTypes(t *testing.T) {
	for d := collective.Float32; d.Size() > 0; d++ {
		require.Contains(t, dataTypes, d)
	}
	for o := collective.Sum; o <= collective.Prod; o++ {
		require.Contains(t, redOps, o)
	}
}

// Exactly what the call reads and writes is copied to the host and back.
func TestCopies(t *testing.T) {
	for _, c := range []struct {
		name    string
		call    collective.Call
		rank    int
		in, out bool
	}{
		{"the root broadcasts", collective.Call{Kind: collective.KindBroadcast, Root: 1}, 1, true, false},
		{"another rank receives", collective.Call{Kind: collective.KindBroadcast, Root: 1}, 0, false, true},
		{"the root of a Reduce", collective.Call{Kind: collective.KindReduce}, 0, true, true},
		{"not the root of a Reduce", collective.Call{Kind: collective.KindReduce}, 1, true, false},
		{"AllReduce", collective.Call{Kind: collective.KindAllReduce}, 1, true, true},
		{"the sender", collective.Call{Kind: collective.KindSend, Root: 1}, 1, true, false},
		{"the receiver", collective.Call{Kind: collective.KindSend, Root: 1}, 0, false, true},
	} {
		v := vector(4096, 100)
		copies, total := seat{c.rank, 2}.copies([]started{{Header: collective.Header{Call: c.call}, Dst: v, Src: v}})
		require.Same(t, copies[0], copies[1], "one vector, one copy")
		require.Equal(t, 832, total)
		require.Equal(t, [2]bool{c.in, c.out}, [2]bool{copies[0].in, copies[0].out}, c.name)
	}
}

// A rank that cannot begin reports it to the others, so that none waits.
func TestNewFails(t *testing.T) {
	views, transports := collective.Local(2)
	_, err := New(t.Context(), views[0], collective.OverTransport(views[0], transports[0]), Config{})
	require.ErrorContains(t, err, "no Device")

	g := collective.NewGroup(views[1], collective.OverTransport(views[1], transports[1]), collective.Options{})
	err = g.Barrier(t.Context())
	named := new(collective.RankError)
	require.ErrorAs(t, err, &named)
	require.Equal(t, 0, named.Rank)
	require.ErrorContains(t, err, "no Device")
	assert.NoError(t, g.Close())

	views, transports = collective.Local(1)
	_, err = New(t.Context(), views[0], collective.OverTransport(views[0], transports[0]), Config{NCCL: Off + 1})
	require.ErrorContains(t, err, "Auto, Must or Off")
}

// nothing is hardware on which no GPU call works.
type nothing struct{ hardware }

func (nothing) index() int                                     { return 99 }
func (nothing) on(_ context.Context, fn func() error) error    { return fn() }
func (nothing) aside(_ context.Context, fn func() error) error { return fn() }
func (nothing) apart(fn func() error) error                    { return fn() }
func (nothing) version() (nccl.Version, error)                 { return 0, cuda.ErrUnavailable }
func (nothing) passed() (bool, error)                          { return true, nil }
func (nothing) close() error                                   { return nil }

// For host memory the engine below makes every call.
func TestHostMemory(t *testing.T) {
	collectivetest.TestGroup(t, func(t testing.TB, n int) []*collective.Group {
		views, transports := collective.Local(n)
		engines := make([]collective.Engine, n)
		var all sync.WaitGroup
		for r := range n {
			all.Go(func() {
				e, err := over(t.Context(), views[r], collective.OverTransport(views[r], transports[r]), nothing{}, Config{ConnectTime: DefaultConnectTime})
				if assert.NoError(t, err) {
					engines[r] = e
				}
			})
		}
		all.Wait()
		return collectivetest.OverEngines(t, views, engines, collective.Options{})
	})
}

// The plan for host vectors is that of the engine below. NCCL does not report its plan.
func TestPlan(t *testing.T) {
	views, transports := collective.Local(1)
	e, err := over(t.Context(), views[0], collective.OverTransport(views[0], transports[0]), nothing{}, Config{ConnectTime: DefaultConnectTime})
	require.NoError(t, err)
	require.ErrorIs(t, e.Without(), cuda.ErrUnavailable)
	g := collective.NewGroup(views[0], e, collective.Options{})
	require.NotZero(t, g.PlanAllReduce(collective.Of(make([]float32, 10)), collective.Sum))
	require.Zero(t, g.PlanAllReduce(collective.OnDevice(99, 4096, 10, collective.Float32), collective.Sum))
	require.NoError(t, g.Close())
}
