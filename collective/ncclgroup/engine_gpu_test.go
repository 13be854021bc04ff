//go:build gpu && cgo && linux

package ncclgroup

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/ringtrain/ringtrain/collective"
	"github.com/ringtrain/ringtrain/collective/collectivetest"
	"github.com/ringtrain/ringtrain/cuda"
)

// A rank is one rank of a group on devices.
type rank struct {
	*workplace
	*collective.Group
	engine *Engine
}

// ranks makes n connected ranks, which are closed at the end of the test.
func ranks(t *testing.T, n int, use Use, o collective.Options) []*rank {
	t.Helper()
	return faultyRanks(t, n, use, o, nil)
}

// faultyRanks is ranks on hardware that fault returns for each rank.
func faultyRanks(t *testing.T, n int, use Use, o collective.Options, fault func(r int, g hardware) hardware) []*rank {
	t.Helper()
	all, errs := tryRanks(t, n, use, o, fault)
	for _, err := range errs {
		require.NoError(t, err)
	}
	return all
}

// tryRanks is faultyRanks without the requirement that New succeeds.
func tryRanks(t *testing.T, n int, use Use, o collective.Options, fault func(r int, g hardware) hardware) ([]*rank, []error) {
	t.Helper()
	roomy(t, n, use)
	views, transports := collective.Local(n)
	all, errs := make([]*rank, n), make([]error, n)
	each(n, func(r int) {
		w, err := open(r)
		if !assert.NoError(t, err) {
			return
		}
		t.Cleanup(func() { assert.NoError(t, w.close()) })
		var e *Engine
		c := Config{Device: w.device, Stream: w.stream, NCCL: use, ConnectTime: 20 * time.Second}
		base := collective.OverTransport(views[r], transports[r])
		if fault == nil {
			e, errs[r] = New(t.Context(), views[r], base, c)
		} else if g, err := openGPU(t.Context(), c); assert.NoError(t, err) {
			e, errs[r] = over(t.Context(), views[r], base, fault(r, g), c)
		}
		if e != nil {
			all[r] = &rank{w, collective.NewGroup(views[r], e, o), e}
		}
	})
	t.Cleanup(func() {
		each(n, func(r int) {
			if all[r] != nil {
				assert.NoError(t, all[r].Close())
			}
		})
	})
	return all, errs
}

// each calls fn for all ranks at once.
func each(n int, fn func(r int)) {
	var all sync.WaitGroup
	for r := range n {
		all.Go(func() { fn(r) })
	}
	all.Wait()
}

// run is each with a context that ends a test before it hangs.
func run(t *testing.T, all []*rank, fn func(ctx context.Context, r *rank)) {
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	each(len(all), func(i int) { fn(ctx, all[i]) })
}

// Every operation on device vectors gives the correct result, computed by NCCL. Where
// ranks of one process cannot share the device, TestOperationsInProcesses tests the
// same.
func TestOperations(t *testing.T) { inProcess(t, Must) }

// The same, staged through host memory.
func TestOperationsStaged(t *testing.T) { inProcess(t, Off) }

// inProcess makes the calls of the table among ranks of one process. It skips the test
// if some number of ranks could not be tested.
func inProcess(t *testing.T, use Use) {
	skipped := 0
	for _, size := range []int{1, 2, 3, most} {
		t.Run(fmt.Sprintf("size %d", size), func(t *testing.T) {
			defer func() {
				if t.Skipped() {
					skipped++
				}
			}()
			counts := make([]tally, size)
			all := faultyRanks(t, size, use, anyOrder, func(r int, g hardware) hardware { return counts[r].on(g) })
			run(t, all, func(ctx context.Context, r *rank) {
				calls, err := counts[r.Rank()].table(ctx, r.workplace, r.Group, use != Off)
				assert.NoError(t, err)
				assert.Equal(t, len(trials()), calls)
				for _, op := range []collective.Op{collective.Sum, collective.Mean} {
					reduce[int64](t, ctx, r, op, 5000)
					reduce[uint8](t, ctx, r, op, 5000)
					near(t, ctx, r, op)
				}
				assert.NoError(t, r.Barrier(ctx))
			})
		})
	}
	if skipped > 0 {
		t.Skipf("%d rank counts were skipped", skipped)
	}
}

func reduce[T collective.Element](t *testing.T, ctx context.Context, r *rank, op collective.Op, n int) {
	v, err := put(r.workplace, collectivetest.Operands[T](r.Rank(), n))
	assert.NoError(t, err)
	assert.NoError(t, r.AllReduce(ctx, v, op))
	got, err := get[T](r.workplace, v)
	assert.NoError(t, err)
	assert.Equal(t, collectivetest.Reduced[T](r.Size(), n, 0, op), got, "%v of %d", op, n)
}

// near checks sums of floats, which NCCL adds in an order of its own.
func near(t *testing.T, ctx context.Context, r *rank, op collective.Op) {
	const n = 10_000
	s := make([]float32, n)
	for i := range s {
		s[i] = 1 / float32(1+i+r.Rank())
	}
	v, err := put(r.workplace, s)
	assert.NoError(t, err)
	assert.NoError(t, r.AllReduce(ctx, v, op))
	got, err := get[float32](r.workplace, v)
	assert.NoError(t, err)
	assert.NoError(t, collective.AllReduce(ctx, r.Group, s, op))
	assert.InDeltaSlice(t, s, got, 1e-6)
}

// In ring order, sums of device vectors have the same bits as sums of host vectors, for
// any part of an arena.
func TestRingOrder(t *testing.T) {
	all := ranks(t, 3, Must, collective.Options{})
	run(t, all, func(ctx context.Context, r *rank) {
		assert.NoError(t, r.engine.Without())
		const n, offset = 20_000, 4096 + 17
		v, err := put(r.workplace, collectivetest.Operands[float32](r.Rank(), n))
		assert.NoError(t, err)
		assert.NoError(t, r.AllReduce(ctx, v.At(offset), collective.Mean))
		got, err := get[float32](r.workplace, v)
		assert.NoError(t, err)
		assert.Equal(t, collectivetest.Reduced[float32](r.Size(), n, offset, collective.Mean), got)
	})
}

// One vector of a call may be in host memory, if it is so on all ranks.
func TestMixedMemory(t *testing.T) {
	all := ranks(t, 2, Auto, collective.Options{Order: collective.AnyOrder})
	run(t, all, func(ctx context.Context, r *rank) {
		v, err := put(r.workplace, []int32{int32(r.Rank()), 7})
		assert.NoError(t, err)
		dst := make([]int32, 4)
		assert.NoError(t, r.AllGather(ctx, collective.Of(dst), v))
		assert.Equal(t, []int32{0, 7, 1, 7}, dst)
		assert.ErrorIs(t, r.AllReduce(ctx, collective.OnDevice(most+r.Rank(), 4096, 1, collective.Int32), collective.Sum), collective.ErrUnsupported)
		assert.NoError(t, r.Barrier(ctx), "a wrong argument does not break the group")
	})
}

func TestSub(t *testing.T) {
	all := ranks(t, most, Must, collective.Options{Order: collective.AnyOrder})
	run(t, all, func(ctx context.Context, r *rank) {
		color := r.Rank() % 2
		if r.Rank() == 3 {
			color = -1
		}
		sub, err := r.Sub(ctx, color, -r.Rank())
		if !assert.NoError(t, err) || sub == nil {
			return
		}
		v, err := put(r.workplace, []int64{int64(1 << r.Rank())})
		assert.NoError(t, err)
		assert.NoError(t, sub.AllReduce(ctx, v, collective.Sum))
		got, err := get[int64](r.workplace, v)
		assert.NoError(t, err)
		assert.Equal(t, []int64{[]int64{1 + 4, 2}[color]}, got)
		assert.NoError(t, sub.Close())
	})
	run(t, all, func(ctx context.Context, r *rank) {
		reduce[int64](t, ctx, r, collective.Sum, 10)
	})
}

// The first call in a Sub may be one that only two of its ranks make. It is staged. NCCL
// carries out those after a call of all ranks.
func TestSendInSub(t *testing.T) {
	counts := make([]tally, 3)
	all := faultyRanks(t, len(counts), Must, anyOrder, func(r int, g hardware) hardware { return counts[r].on(g) })
	run(t, all, func(ctx context.Context, r *rank) {
		sub, err := r.Sub(ctx, 0, r.Rank())
		if !assert.NoError(t, err) {
			return
		}
		send := func() {
			v, err := put(r.workplace, []int64{int64(r.Rank()), 5})
			assert.NoError(t, err)
			assert.NoError(t, fromFirstToLast(ctx, sub, v, v, 0))
			got, err := get[int64](r.workplace, v)
			assert.NoError(t, err)
			assert.Equal(t, []int64{int64(r.Rank() % 2), 5}, got)
		}
		send()
		assert.Zero(t, counts[r.Rank()].calls.Load())
		reduce[int64](t, ctx, &rank{r.workplace, sub, r.engine}, collective.Sum, 10)
		assert.EqualValues(t, 1, counts[r.Rank()].calls.Load())
		send()
		assert.EqualValues(t, 2-r.Rank()%2, counts[r.Rank()].calls.Load())
		assert.NoError(t, sub.Close())
	})
}

// The stream executes a queued call once, and a captured call at every launch of the
// graph.
func TestQueue(t *testing.T) {
	const launches = 3
	all := ranks(t, 2, Must, collective.Options{Order: collective.AnyOrder})
	call := collective.Call{Kind: collective.KindAllReduce, DType: collective.Int64, Op: collective.Sum, Count: 4}
	run(t, all, func(ctx context.Context, r *rank) {
		v, err := put(r.workplace, []int64{1, 2, 3, 4})
		assert.NoError(t, err)
		assert.NoError(t, r.engine.Queue(ctx, call, v, v))
		var graph *cuda.Graph
		assert.NoError(t, r.device.Do(ctx, func() (err error) {
			graph, err = r.stream.Capture(func() error { return r.engine.Queue(ctx, call, v, v) })
			for i := 0; err == nil && i < launches; i++ {
				err = graph.Launch(r.stream)
			}
			return err
		}))
		got, err := get[int64](r.workplace, v)
		assert.NoError(t, err)
		assert.Equal(t, []int64{16, 32, 48, 64}, got)
		mean := call
		mean.Op = collective.Mean
		assert.ErrorIs(t, r.engine.Queue(ctx, mean, v, v), collective.ErrUnsupported, "NCCL has no exact mean of integers")
		assert.NoError(t, r.device.Do(ctx, graph.Destroy))
		assert.NoError(t, r.Barrier(ctx))
	})
}

// Inside a capture, a Group's call would wait for work that is never launched.
func TestCaptureOfAGroupsCall(t *testing.T) {
	all := ranks(t, 1, Must, collective.Options{Order: collective.AnyOrder})
	r := all[0]
	v, err := put(r.workplace, []float32{1})
	require.NoError(t, err)
	require.ErrorIs(t, r.device.Do(t.Context(), func() error {
		_, err := r.stream.Capture(func() error { return r.AllReduce(t.Context(), v, collective.Sum) })
		return err
	}), collective.ErrUnsupported)
}
