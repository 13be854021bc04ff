//go:build gpu && cgo && linux

package ncclgroup

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/ringtrain/ringtrain/collective"
	"github.com/ringtrain/ringtrain/cuda"
	"github.com/ringtrain/ringtrain/nccl"
)

// soon limits how long a rank may take to learn that another rank has failed.
const soon = 2 * time.Second

// faulty is hardware with injected faults.
type faulty struct {
	hardware
	before   func() error // called before queueing, if not nil
	state    func() error // replaces AsyncError if that returns nil and state is not nil
	versions func() (nccl.Version, error)
	closes   *int   // if not nil, counts calls of close
	asked    func() // called before passed, if not nil
}

func (f *faulty) passed() (bool, error) {
	if f.asked != nil {
		f.asked()
	}
	return f.hardware.passed()
}

func (f *faulty) close() error {
	if f.closes != nil {
		*f.closes++
	}
	return f.hardware.close()
}

func (f *faulty) version() (nccl.Version, error) {
	if f.versions != nil {
		return f.versions()
	}
	return f.hardware.version()
}

func (f *faulty) join(size int, id nccl.UniqueID, rank int) (communicator, error) {
	c, err := f.hardware.join(size, id, rank)
	return &faultyComm{c, f}, err
}

type faultyComm struct {
	communicator
	f *faulty
}

func (c *faultyComm) queue(s cuda.Stream, commands []nccl.Command) error {
	if c.f.before != nil {
		if err := c.f.before(); err != nil {
			return err
		}
	}
	return c.communicator.queue(s, commands)
}

func (c *faultyComm) AsyncError() error {
	if err := c.communicator.AsyncError(); err != nil || c.f.state == nil {
		return err
	}
	return c.f.state()
}

// anyOrder lets NCCL reduce.
var anyOrder = collective.Options{Order: collective.AnyOrder, Deadline: time.Minute}

// ends makes a call on each rank and checks that all of them fail soon.
func ends(t *testing.T, all []*rank, call func(ctx context.Context, r *rank, v collective.Vector) error, check func(r *rank, err error)) {
	t.Helper()
	run(t, all, func(ctx context.Context, r *rank) {
		v, err := put(r.workplace, make([]float32, 100_000))
		assert.NoError(t, err)
		begin := time.Now()
		err = call(ctx, r, v)
		assert.Less(t, time.Since(begin), soon, "rank %d", r.Rank())
		check(r, err)
		assert.Equal(t, err, r.AllReduce(ctx, v, collective.Sum), "a broken group stays broken")
	})
}

// blames checks that an error names a rank.
func blames(t *testing.T, err error, rank int) *collective.RankError {
	t.Helper()
	var named *collective.RankError
	if assert.ErrorAs(t, err, &named) {
		assert.Equal(t, rank, named.Rank, "%v", err)
	}
	return named
}

func TestMismatch(t *testing.T) {
	for name, call := range map[string]func(ctx context.Context, r *rank, v collective.Vector) error{
		"lengths": func(ctx context.Context, r *rank, v collective.Vector) error {
			return r.AllReduce(ctx, v.Slice(0, 10+r.Rank()/2), collective.Sum)
		},
		"operations": func(ctx context.Context, r *rank, v collective.Vector) error {
			if r.Rank() == 2 {
				return r.Broadcast(ctx, v, 0)
			}
			return r.AllReduce(ctx, v, collective.Sum)
		},
		"counts": func(ctx context.Context, r *rank, v collective.Vector) error {
			sends, recvs := []int{1, 1, 1}, []int{1, 1, 1}
			if r.Rank() == 2 {
				sends[0] = 2
			}
			return r.AllToAllV(ctx, v.Slice(0, 3), v.Slice(10, 13+r.Rank()/2), sends, recvs)
		},
		"memory": func(ctx context.Context, r *rank, v collective.Vector) error {
			if r.Rank() == 1 {
				return collective.AllReduce(ctx, r.Group, make([]float32, v.Len()), collective.Sum)
			}
			return r.AllReduce(ctx, v, collective.Sum)
		},
	} {
		t.Run(name, func(t *testing.T) {
			ends(t, ranks(t, 3, Must, anyOrder), call, func(_ *rank, err error) {
				assert.ErrorIs(t, err, collective.ErrMismatch)
			})
		})
	}
}

// A rank that makes no call is named at the deadline.
func TestNotCalled(t *testing.T) {
	all := ranks(t, 2, Must, collective.Options{Order: collective.AnyOrder, Deadline: 200 * time.Millisecond})
	ends(t, all[:1], func(ctx context.Context, r *rank, v collective.Vector) error {
		return r.AllReduce(ctx, v, collective.Sum)
	}, func(_ *rank, err error) {
		assert.ErrorIs(t, err, collective.ErrLate)
		blames(t, err, 1)
	})
}

// A rank agrees to a call and never queues it. NCCL would wait forever on the others,
// but their deadline ends it.
func TestStuck(t *testing.T) {
	hold := make(chan struct{})
	all := faultyRanks(t, 3, Must, collective.Options{Order: collective.AnyOrder, Deadline: 300 * time.Millisecond},
		func(r int, g hardware) hardware {
			f := &faulty{hardware: g}
			if r == 1 {
				f.before = func() error {
					<-hold
					return nil
				}
			}
			return f
		})
	ends(t, all, func(ctx context.Context, r *rank, v collective.Vector) error {
		if r.Rank() == 1 {
			go func() { // the device hangs until the other ranks have failed
				<-all[0].engine.Broken()
				<-all[2].engine.Broken()
				close(hold)
			}()
		}
		return r.AllReduce(ctx, v, collective.Sum)
	}, func(_ *rank, err error) {
		assert.ErrorContains(t, err, "NCCL did not finish it in time")
		assert.NotErrorIs(t, err, collective.ErrMismatch)
	})
}

// Whatever breaks one rank during a call breaks the others too, and they name that
// rank.
func TestFailures(t *testing.T) {
	errCable := &nccl.Error{Call: "ncclCommGetAsyncError", Result: nccl.SystemError, Text: "socket closed"}
	for name, fault := range map[string]struct {
		fail func(r *rank) error // called on rank 1 in place of queueing
		want string
	}{
		"aborts": {func(r *rank) error {
			r.Abort(errors.New("out of coffee"))
			return nil
		}, "out of coffee"},
		"NCCL refuses": {func(*rank) error { return errCable }, "ncclSystemError: socket closed"},
		"the device fails": {func(*rank) error {
			return &cuda.Error{Call: "cuLaunchKernel", Name: "CUDA_ERROR_LAUNCH_FAILED"}
		}, "CUDA_ERROR_LAUNCH_FAILED"},
	} {
		t.Run(name, func(t *testing.T) {
			var culprit *rank
			all := faultyRanks(t, 3, Must, anyOrder, func(r int, g hardware) hardware {
				f := &faulty{hardware: g}
				if r == 1 {
					f.before = func() error { return fault.fail(culprit) }
				}
				return f
			})
			culprit = all[1]
			ends(t, all, func(ctx context.Context, r *rank, v collective.Vector) error {
				return r.AllReduce(ctx, v, collective.Sum)
			}, func(_ *rank, err error) {
				blames(t, err, 1)
				assert.ErrorContains(t, err, fault.want)
			})
		})
	}
}

// An error that NCCL detects between calls breaks all ranks.
func TestAsyncError(t *testing.T) {
	var failing atomic.Bool
	all := faultyRanks(t, 2, Must, anyOrder, func(r int, g hardware) hardware {
		return &faulty{hardware: g, state: func() error {
			if r == 0 && failing.Load() {
				return &nccl.Error{Call: "ncclCommGetAsyncError", Result: nccl.RemoteError}
			}
			return nil
		}}
	})
	failing.Store(true)
	for _, r := range all {
		select {
		case <-r.engine.Broken():
		case <-time.After(soon):
			t.Fatalf("rank %d was not told of the error", r.Rank())
		}
		named := blames(t, r.engine.Err(), 0)
		require.Equal(t, "local/0", named.Node)
		require.ErrorContains(t, r.Barrier(t.Context()), "ncclRemoteError")
	}
}

func TestCancelled(t *testing.T) {
	all := ranks(t, 3, Must, anyOrder)
	ends(t, all, func(ctx context.Context, r *rank, v collective.Vector) error {
		if r.Rank() == 1 {
			canceled, cancel := context.WithCancel(ctx)
			cancel()
			ctx = canceled
		}
		return r.AllReduce(ctx, v, collective.Sum)
	}, func(_ *rank, err error) {
		assert.ErrorIs(t, err, context.Canceled)
		blames(t, err, 1)
	})
}

// If a communicator is aborted, its call in progress fails, even if the device reports
// completion first.
func TestAbortedIsNotDone(t *testing.T) {
	var waiting *rank
	errRefused := &nccl.Error{Call: "ncclAllReduce", Result: nccl.SystemError}
	all := faultyRanks(t, 2, Must, anyOrder, func(r int, g hardware) hardware {
		f := &faulty{hardware: g}
		if r == 1 {
			f.before = func() error { return errRefused }
		} else {
			f.asked = func() { <-waiting.engine.link.aborted }
		}
		return f
	})
	waiting = all[0]
	ends(t, all, func(ctx context.Context, r *rank, v collective.Vector) error {
		return r.AllReduce(ctx, v, collective.Sum)
	}, func(_ *rank, err error) { blames(t, err, 1) })
}

// When a rank aborts its communicator, a call in progress on another rank fails, even if NCCL
// ends it there as if nothing had happened, with garbage in the vector.
func TestGarbageIsNotAResult(t *testing.T) {
	var all []*rank
	var once sync.Once
	queued, heard := make(chan struct{}), make(chan struct{})
	all = faultyRanks(t, 2, Must, anyOrder, func(r int, g hardware) hardware {
		f := &faulty{hardware: g}
		if r == 1 {
			f.asked = func() { once.Do(func() { close(queued) }) }
			return f
		}
		f.before = func() error { // rank 1 is in the call, and its device waits for this rank
			<-queued
			all[1].Abort(errors.New("out of coffee"))
			<-all[1].engine.link.aborted
			return nil
		}
		f.asked = func() {
			assert.NoError(t, all[0].stream.Sync(context.Background()))
			close(heard)
			f.asked = nil
		}
		return f
	})
	late := all[0].engine.link
	late.mu.Lock()
	late.breaking = func() { <-heard } // only now can the call know
	late.mu.Unlock()
	ends(t, all, func(ctx context.Context, r *rank, v collective.Vector) error {
		return r.AllReduce(ctx, v, collective.Sum)
	}, func(_ *rank, err error) { blames(t, err, 1) })
}

// NCCL does not end a communicator that a graph holds. A rank that fails is still named
// at once, and Close reports what it leaves behind.
func TestGraphHoldsTheCommunicator(t *testing.T) {
	closes := make([]int, 2)
	all := faultyRanks(t, 2, Must, anyOrder, func(r int, g hardware) hardware { return &faulty{hardware: g, closes: &closes[r]} })
	var graph *cuda.Graph
	run(t, all, func(ctx context.Context, r *rank) { // NCCL connects in the first call, which needs all ranks
		v, err := put(r.workplace, make([]float32, 10))
		assert.NoError(t, err)
		assert.NoError(t, r.AllReduce(ctx, v, collective.Sum))
	})
	v, err := put(all[0].workplace, make([]float32, 10))
	require.NoError(t, err)
	call := collective.Call{Kind: collective.KindAllReduce, DType: collective.Float32, Op: collective.Sum, Count: 10}
	require.NoError(t, all[0].device.Do(t.Context(), func() (err error) {
		graph, err = all[0].stream.Capture(func() error { return all[0].engine.Queue(t.Context(), call, v, v) })
		return err
	}))
	all[1].Abort(errors.New("out of coffee"))
	begin := time.Now()
	blames(t, all[0].Barrier(t.Context()), 1)
	assert.Less(t, time.Since(begin), time.Second)
	assert.ErrorContains(t, all[0].Close(), "a graph that uses it")
	assert.NoError(t, all[1].Close())
	assert.Equal(t, []int{0, 1}, closes)

	require.NoError(t, all[0].device.Do(t.Context(), graph.Destroy))
	<-all[0].engine.link.aborted // the thread has returned from NCCL
	assert.NoError(t, all[0].engine.gpu.close())
}

func TestCloseDuringACall(t *testing.T) {
	all := ranks(t, 2, Must, anyOrder)
	v, err := put(all[0].workplace, make([]float32, 10))
	require.NoError(t, err)
	work := all[0].AllReduceAsync(t.Context(), v, collective.Sum)
	require.NoError(t, all[0].Close())
	require.ErrorIs(t, work.Wait(t.Context()), collective.ErrClosed)
	require.ErrorIs(t, all[1].Barrier(t.Context()), collective.ErrLeft)
}

// If one rank has no NCCL, no rank uses it, or New returns an error.
func TestWithoutNCCL(t *testing.T) {
	errNone := errors.New("there is no libnccl.so.2: pip install nvidia-nccl-cu12")
	none := func(r int, g hardware) hardware {
		f := &faulty{hardware: g}
		if r == 1 {
			f.versions = func() (nccl.Version, error) { return 0, errNone }
		}
		return f
	}
	all := faultyRanks(t, 2, Auto, anyOrder, none)
	require.ErrorContains(t, all[0].engine.Without(), "rank 1 (local/1) does not use NCCL")
	require.ErrorIs(t, all[1].engine.Without(), errNone)
	run(t, all, func(ctx context.Context, r *rank) {
		reduce[float32](t, ctx, r, collective.Sum, 5000)
		v, err := put(r.workplace, []float32{1})
		assert.NoError(t, err)
		assert.ErrorIs(t, r.engine.Queue(ctx, collective.Call{Kind: collective.KindBroadcast, DType: collective.Float32, Count: 1}, v, v), collective.ErrUnsupported)
	})

	_, errs := tryRanks(t, 2, Must, anyOrder, none)
	require.ErrorContains(t, errs[0], "NCCL must be used")
	require.ErrorContains(t, errs[0], "rank 1 (local/1)", "its reason, or that it has one")
	require.ErrorContains(t, errs[1], "NCCL must be used")
}

func TestVersionsDiffer(t *testing.T) {
	_, errs := tryRanks(t, 2, Auto, anyOrder, func(r int, g hardware) hardware {
		return &faulty{hardware: g, versions: func() (nccl.Version, error) { return nccl.NewVersion(2, 20+r, 5), nil }}
	})
	for _, err := range errs {
		require.ErrorIs(t, err, ErrVersions)
		require.ErrorContains(t, err, "rank 1 (local/1) has NCCL 2.21.5 and rank 0 (local/0) has 2.20.5: "+
			"all ranks need the same version of NCCL: install one version everywhere, or turn NCCL off with --nccl off")
	}
}

// If ranks cannot connect, every rank gets NCCL's own reason.
func TestCannotConnect(t *testing.T) {
	emulated(t)
	if real() {
		t.Skip("ranks may share a device in this run")
	}
	views, transports := collective.Local(2)
	each(2, func(r int) {
		w, err := open(0) // both
		if !assert.NoError(t, err) {
			return
		}
		_, err = New(t.Context(), views[r], collective.OverTransport(views[r], transports[r]), Config{Device: w.device, Stream: w.stream})
		blamed := new(collective.RankError)
		assert.ErrorAs(t, err, &blamed)
		assert.ErrorContains(t, err, "using the same GPU")
		assert.NoError(t, w.close())
	})
}
