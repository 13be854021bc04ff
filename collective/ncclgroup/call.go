package ncclgroup

import (
	"context"
	"fmt"
	"unsafe"

	"github.com/ringtrain/ringtrain/collective"
	"github.com/ringtrain/ringtrain/cuda"
	"github.com/ringtrain/ringtrain/nccl"
)

// byNCCL carries out calls on device vectors. When a rank aborts its communicator, NCCL's
// kernels on the others can end as if nothing had happened, with garbage in the vectors,
// before their hosts know. So the ranks meet again when their devices have finished. Those
// that come have not aborted, and if all come, the result is what the call says.
func (e *Engine) byNCCL(ctx context.Context, calls []started) error {
	if err := e.below.agree(ctx, calls); err != nil {
		return err
	}
	if !e.link.handle.there() && !e.link.over() {
		if err := e.join(ctx, calls[0].Header.Seq); err != nil {
			return err
		}
	}
	var commands []nccl.Command
	for i := range calls {
		commands = append(commands, e.seat.commands(&calls[i])...)
	}
	if len(commands) > 0 { // a rank of an AllToAllV may have none, and others some
		err := e.queue.run(ctx, func() error { return e.queue.submit(ctx, e.config.Stream, commands) })
		if err == nil {
			err = e.queue.finish(ctx)
		}
		if err != nil {
			return err
		}
	}
	return e.below.meet(ctx, calls)
}

// Queue puts a call on device vectors on Config.Stream, for NCCL, and waits neither for
// the device nor for other ranks. It can be captured, after an earlier call has made the
// connections that it needs; in a Sub, that is a call of all ranks. Every rank queues the
// same calls, in the same order among its Group's calls and its graph launches, and while
// none of these is in progress; nothing checks that. dst and src belong to the stream
// until the call is done there.
// ErrUnsupported means that NCCL is not used, or cannot do the call; make it through the
// Group instead.
func (e *Engine) Queue(ctx context.Context, c collective.Call, dst, src collective.Vector) error {
	return e.queueOn(ctx, e.config.Stream, c, dst, src)
}

// Queued returns [Engine.Queue] as a function of the stream, which may be any stream of
// the device. It is for callers that queue work in their own order and repeat it, such as
// nn/gpu's Backend.Queue and Backend.Aside. Calls on several streams also have one order.
// Before a Group's call, those on other streams are done, or Config.Stream waits for
// them.
func (e *Engine) Queued(ctx context.Context, c collective.Call, dst, src collective.Vector) func(cuda.Stream) error {
	return func(s cuda.Stream) error { return e.queueOn(ctx, s, c, dst, src) }
}

func (e *Engine) queueOn(ctx context.Context, s cuda.Stream, c collective.Call, dst, src collective.Vector) error {
	if !e.busy.TryLock() {
		if e.link.closing.Load() {
			return collective.ErrClosed
		}
		return fmt.Errorf("ncclgroup: queueing %v: %w", c, collective.ErrConcurrent) // waiting here, on the device's thread, might never end
	}
	defer e.busy.Unlock()
	calls := []started{{Header: collective.Header{Call: c}, Dst: dst, Src: src}}
	switch {
	case e.link.closing.Load():
		return collective.ErrClosed
	case e.link.over():
		return e.Err()
	case e.way(calls) != byNCCL || !e.Reaches(dst) || !e.Reaches(src):
		return fmt.Errorf("ncclgroup: queueing %v: %w", c, collective.ErrUnsupported)
	case !e.link.handle.there():
		return fmt.Errorf("ncclgroup: queueing %v: %w: all ranks of the Group must make a call on device vectors first", c, collective.ErrUnsupported)
	}
	commands := e.seat.commands(&calls[0])
	if len(commands) == 0 {
		return nil
	}
	if err := e.queue.submitUnmarked(ctx, s, commands); err != nil {
		return e.named(e.blame(ctx, err))
	}
	return nil
}

// Broken returns a channel that is closed when the engine breaks, by this or another
// rank. What Queue put on the stream then ends with garbage. Destroy the graphs in which
// it was captured now: NCCL keeps a thread until they are gone.
func (e *Engine) Broken() <-chan struct{} { return e.link.broken }

// Err returns what broke the engine, with the culprit if known, or nil.
func (e *Engine) Err() error {
	if !e.link.over() {
		return nil
	}
	if err := e.base.Err(); err != nil {
		return e.named(err)
	}
	return e.named(e.link.cause)
}

// sameMemory reports whether two vectors of a call share their memory.
func sameMemory(a, b collective.Vector) bool {
	return a.Bytes() == b.Bytes() && at(a) == at(b) && hostAddress(a) == hostAddress(b)
}

func hostAddress(v collective.Vector) *byte {
	b, _ := v.Host()
	return unsafe.SliceData(b)
}
