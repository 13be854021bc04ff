package ncclgroup

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"

	"github.com/ringtrain/ringtrain/collective"
)

// An Engine is a collective.Engine for device memory, over one for host memory.
type Engine struct {
	view   collective.View
	seat   seat
	base   *collective.HostEngine
	gpu    hardware
	config Config
	parent *Engine // of a Sub: owns gpu
	any    bool    // NCCL may reduce

	without error // why no rank uses NCCL; nil if all do

	busy    sync.Mutex // held by a call in progress
	started []started
	below   *below       // makes calls on base
	queue   *deviceQueue // queues calls for NCCL
	staging *staging     // makes calls on base with copies of device memory

	link   *link        // the communicator
	stuck  *atomic.Bool // a thread has not returned from NCCL; shared with all Subs
	closed sync.Once
	err    error // of closing
}

var _ collective.Engine = (*Engine)(nil)

// New makes an Engine over base, which belongs to it from now on, even after an error.
// Every rank of the View calls New, before any other call. The ranks compare versions of
// NCCL, rank 0 makes an id and sends it over base, and all connect. If a rank fails, or
// does not call New within Config.ConnectTime, all ranks get a *collective.RankError that
// names it.
func New(ctx context.Context, v collective.View, base *collective.HostEngine, c Config) (*Engine, error) {
	if err := c.complete(); err != nil {
		return nil, errors.Join(err, base.Close())
	}
	g, err := openGPU(ctx, c)
	if err != nil {
		base.Abort(&collective.RankError{Rank: v.Self, Phase: "failed", Err: err})
		return nil, errors.Join(err, base.Close())
	}
	return over(ctx, v, base, g, c)
}

// over is New on any hardware, which belongs to the Engine, too.
func over(ctx context.Context, v collective.View, base *collective.HostEngine, g hardware, c Config) (*Engine, error) {
	e := newEngine(v, base, g, c)
	ctx, cancel := context.WithTimeoutCause(ctx, c.ConnectTime, collective.ErrLate)
	defer cancel()
	if err := e.begin(ctx); err != nil {
		err = e.named(e.blame(ctx, err))
		return nil, errors.Join(err, e.Close())
	}
	return e, nil
}

func newEngine(v collective.View, b *collective.HostEngine, g hardware, c Config) *Engine {
	s := seat{v.Self, v.Size()}
	host, l := &below{s, b}, newLink(s, b, g, c.Breaking)
	calls := &deviceQueue{gpu: g, stream: c.Stream, link: l}
	return &Engine{
		view: v, seat: s, base: b, gpu: g, config: c, stuck: new(atomic.Bool),
		below: host, queue: calls, staging: &staging{s, g, calls, host}, link: l,
	}
}

// named adds epoch and node to an error that reaches no Group, which would add them.
func (e *Engine) named(err error) error {
	var found *collective.RankError
	if !errors.As(err, &found) {
		return err
	}
	named := *found
	named.Epoch, named.Node = e.view.Epoch, e.view.Name(found.Rank)
	return &named
}

// Host is part of collective.Engine.
func (e *Engine) Host() *collective.HostEngine { return e.base }

// Order is part of collective.Engine: NCCL reduces only under AnyOrder.
func (e *Engine) Order(o collective.Order) {
	e.any = o == collective.AnyOrder
	e.base.Order(o)
}

// Without returns why NCCL is not used, or nil if it is.
func (e *Engine) Without() error { return e.without }

// Reaches is part of collective.Engine: memory of the device and of the host.
func (e *Engine) Reaches(v collective.Vector) bool {
	if device, _, ok := v.Device(); ok {
		return device == e.gpu.index()
	}
	return e.base.Reaches(v)
}

// Start is part of collective.Engine. It defers all work to Wait.
func (e *Engine) Start(o *collective.Operation) error {
	e.started = append(e.started, started(*o))
	return nil
}

// Wait is part of collective.Engine. It returns when the device has finished the calls.
func (e *Engine) Wait(ctx context.Context) error {
	calls := e.started
	e.started = e.started[:0]
	if len(calls) == 0 {
		return nil
	}
	e.busy.Lock()
	defer e.busy.Unlock()
	if e.link.closing.Load() {
		return collective.ErrClosed
	}
	if err := e.carryOut(ctx, calls); err != nil {
		return e.blame(ctx, err)
	}
	return nil
}

// carryOut carries out calls in the same way. There are several only for the halves of a
// SendRecv.
func (e *Engine) carryOut(ctx context.Context, calls []started) error {
	e.queue.use = unused
	if e.link.over() {
		return errBroken
	}
	way := e.way(calls)
	if way == byNCCL && calls[0].kind() == collective.KindSend && !e.link.handle.there() {
		way = inStages // all ranks of a Sub must connect, and only two make this call
	}
	switch way {
	case onHost:
		return e.below.carryOut(ctx, calls)
	case byNCCL:
		return e.byNCCL(ctx, calls)
	}
	return e.staging.carryOut(ctx, calls)
}

// A way is a way to carry out calls.
type way uint8

const (
	onHost way = iota
	byNCCL
	inStages
)

// way chooses how to carry out calls. Ranks that make the same call choose the same way if
// their vectors are in the same kind of memory.
func (e *Engine) way(calls []started) way {
	host, device := 0, 0
	can := e.without == nil
	for i := range calls {
		s := &calls[i]
		if s.kind() == collective.KindBarrier {
			return onHost
		}
		for _, v := range s.vectors() {
			if _, _, ok := v.Device(); ok {
				device++
			} else {
				host++
			}
		}
		if s.reduces() && (!e.any || s.Header.Call.Op == collective.Mean && whole(s.Header.Call.DType)) {
			can = false
		}
	}
	switch {
	case device == 0:
		return onHost
	case host == 0 && can:
		return byNCCL
	}
	return inStages
}

// Sub is part of collective.Engine. The ranks of the Sub connect with NCCL in their first
// call on device vectors, with an id of their own: ncclCommSplit needs all ranks of the
// parent.
func (e *Engine) Sub(id uint32, v collective.View, ranks []int) (collective.Engine, error) {
	below, err := e.base.Sub(id, v, ranks)
	if err != nil {
		return nil, err
	}
	s := newEngine(v, below.Host(), e.gpu, e.config)
	s.parent, s.any, s.without, s.stuck = e, e.any, e.without, e.stuck
	return s, nil
}

// Abort is part of collective.Engine.
func (e *Engine) Abort(cause *collective.RankError) {
	e.base.Abort(cause)
	e.link.breakUp(cause)
}

// Close is part of collective.Engine. Destroy all graphs in which Queue was captured
// first; otherwise Close returns an error after closeTime and does not release the device.
// Ranks need not close at the same time, but Close takes closeTime longer if some never
// do.
func (e *Engine) Close() error {
	e.closed.Do(func() {
		e.link.closing.Store(true)
		if !e.busy.TryLock() {
			e.link.breakUp(collective.ErrClosed)
			e.err = e.base.Close() // ends the call
			e.busy.Lock()
		}
		defer e.busy.Unlock()
		e.err = errors.Join(e.err, e.base.Close())
		err := e.link.disconnect()
		if errors.Is(err, errAborts) {
			e.stuck.Store(true)
		}
		e.err = errors.Join(e.err, err)
		if e.parent == nil && !e.stuck.Load() {
			e.err = errors.Join(e.err, e.gpu.close())
		}
	})
	return e.err
}
