//go:build gpu && cgo && linux

package nccl

import (
	"context"
	"errors"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/ringtrain/ringtrain/cuda"
	"github.com/ringtrain/ringtrain/cuda/emulator"
)

// emulate makes this process use the emulator.
func emulate(t *testing.T) {
	t.Helper()
	env, err := emulator.BuildShared(t.Context())
	if errors.Is(err, emulator.ErrNoCompiler) {
		t.Skip(err)
	}
	require.NoError(t, err)
	for _, setting := range append(env, "RINGTRAIN_EMULATOR_DEVICES=4") {
		name, value, _ := strings.Cut(setting, "=")
		t.Setenv(name, value)
	}
}

// ready waits until the communicator has finished its last call.
func ready(c Comm) error {
	tick := time.NewTicker(time.Millisecond)
	defer tick.Stop()
	for {
		if err := c.AsyncError(); !errors.Is(err, ErrInProgress) {
			return err
		}
		<-tick.C
	}
}

// A member is a rank of a test.
type member struct {
	t          *testing.T
	rank, size int
	comm       Comm
	device     *cuda.Device
	stream     cuda.Stream
}

// join runs fn for each of n ranks, each on its own device.
func join(t *testing.T, n int, fn func(m *member)) {
	emulate(t)
	id, err := GetUniqueID()
	require.NoError(t, err)
	var all sync.WaitGroup
	for r := range n {
		all.Go(func() {
			d, err := cuda.Open(r)
			if !assert.NoError(t, err) {
				return
			}
			assert.NoError(t, d.Do(context.Background(), func() error {
				m := &member{t: t, rank: r, size: n, device: d}
				if m.stream, err = d.NewStream(); err != nil {
					return err
				}
				if m.comm, err = InitRank(n, id, r); err != nil {
					return err
				}
				if err := ready(m.comm); err != nil {
					return err
				}
				fn(m)
				assert.NoError(t, m.comm.Finalize())
				assert.NoError(t, ready(m.comm))
				return errors.Join(m.comm.Destroy(), m.stream.Destroy())
			}))
			assert.NoError(t, d.Close())
		})
	}
	all.Wait()
}

// put copies s to new device memory.
func (m *member) put(s ...int32) cuda.Ptr {
	p, err := m.device.Alloc(4 * max(len(s), 1))
	assert.NoError(m.t, err)
	assert.NoError(m.t, m.stream.Write(p, cuda.BytesOf(s)))
	return p
}

// expect requires that a call succeeded and left want in device memory.
func (m *member) expect(call error, p cuda.Ptr, want ...int32) {
	m.t.Helper()
	assert.NoError(m.t, call)
	assert.NoError(m.t, ready(m.comm))
	got := make([]int32, len(want))
	assert.NoError(m.t, m.stream.Read(cuda.BytesOf(got), p))
	assert.Equal(m.t, want, got, "rank %d", m.rank)
}

func TestCalls(t *testing.T) {
	join(t, 3, func(m *member) {
		n, err := m.comm.Count()
		assert.NoError(t, err)
		assert.Equal(t, m.size, n)
		rank, err := m.comm.UserRank()
		assert.NoError(t, err)
		assert.Equal(t, m.rank, rank)
		device, err := m.comm.CuDevice()
		assert.NoError(t, err)
		assert.Equal(t, m.rank, device)

		c, s, r := m.comm, m.stream, int32(m.rank)
		up, down := (m.rank+1)%m.size, (m.rank+m.size-1)%m.size
		mine, out := m.put(10+r, 20+r, 30+r), m.put(0, 0, 0, 0, 0, 0)
		m.expect(c.AllReduce(mine, out, 3, Int32, Sum, s), out, 33, 63, 93)
		m.expect(c.AllReduce(mine, out, 3, Int32, Max, s), out, 12, 22, 32)
		m.expect(c.ReduceScatter(mine, out, 1, Int32, Min, s), out, 10*(r+1))
		m.expect(c.AllGather(mine, out, 2, Int32, s), out, 10, 20, 11, 21, 12, 22)
		m.expect(c.Broadcast(mine, out, 3, Int32, 1, s), out, 11, 21, 31)
		m.expect(c.AllToAll(mine, out, 1, 4, Int32, s), out, 10*(r+1), 10*(r+1)+1, 10*(r+1)+2)
		m.expect(c.Group(s, []Command{
			{Kind: KindSend, Type: Int32, Peer: int32(up), Send: mine, Count: 1},
			{Kind: KindRecv, Type: Int32, Peer: int32(down), Recv: out, Count: 1},
		}), out, 10+int32(down))
		if err := c.Reduce(mine, out, 2, Int32, Prod, 2, s); m.rank == 2 {
			m.expect(err, out, 10*11*12, 20*21*22)
		} else {
			m.expect(err, mine, 10+r)
		}
		switch m.rank {
		case 0:
			m.expect(c.Send(mine, 3, Int32, 2, s), mine, 10)
		case 2:
			m.expect(c.Recv(out, 3, Int32, 0, s), out, 10, 20, 30)
		}
	})
}

func TestSplit(t *testing.T) {
	require.NoError(t, func() error { emulate(t); return Available() }())
	join(t, 4, func(m *member) {
		part, err := m.comm.Split(m.rank%2, -m.rank)
		assert.NoError(t, err)
		assert.NoError(t, ready(m.comm))
		assert.NoError(t, ready(part))
		rank, err := part.UserRank()
		assert.NoError(t, err)
		assert.Equal(t, 1-m.rank/2, rank, "the keys reverse the order")
		v := m.put(int32(m.rank))
		m.expect(part.AllReduce(v, v, 1, Int32, Sum, m.stream), v, int32(2+2*(m.rank%2)))
		assert.NoError(t, part.Abort())
	})
}

// A mistake in a group returns NCCL's own error, and the communicator still works.
func TestMistake(t *testing.T) {
	join(t, 1, func(m *member) {
		err := m.comm.Group(m.stream, []Command{
			{Kind: KindAllReduce, Type: Int32, Send: m.put(1), Recv: m.put(1), Count: 1},
			{Kind: KindBroadcast, Type: 99, Count: 1},
		})
		assert.ErrorIs(t, err, &Error{Call: "ncclBroadcast", Result: InvalidArgument})
		v := m.put(5)
		m.expect(m.comm.AllReduce(v, v, 1, Int32, Sum, m.stream), v, 5)
	})
}
