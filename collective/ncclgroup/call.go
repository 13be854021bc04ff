package ncclgroup

import (
	"context"
	"fmt"
	"unsafe"

	"github.com/ringtrain/ringtrain/collective"
	"github.com/ringtrain/ringtrain/cuda"
	"github.com/ringtrain/ringtrain/nccl"
)

// byNCCL carries out calls of device vectors.
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
	if len(commands) == 0 {
		return nil
	}
	err := e.lane.put(ctx, func() error { return e.lane.queue(ctx, e.config.Stream, commands) })
	if err != nil {
		return err
	}
	return e.lane.finish(ctx)
}

// Queue puts a call of device vectors on Config.Stream, for NCCL, and waits neither
// for the device nor for other ranks. It may be captured; calls before that have
// made the connections that it needs. Every rank queues the same, in the same
// order among its Group's calls and its launches of graphs, none of which is in
// progress meanwhile; nobody compares. dst and src belong to the stream until the
// call is done there. ErrUnsupported says that NCCL is not used, or not for this:
// then leave it to the Group.
func (e *Engine) Queue(ctx context.Context, c collective.Call, dst, src collective.Vector) error {
	return e.queueOn(ctx, e.config.Stream, c, dst, src)
}

// Queued is [Engine.Queue] as a function of the stream, which may be another of the
// device: for who queues work in an order of its own and repeats it, as nn/gpu's
// Backend.Queue and Backend.Aside do. Calls on several streams are in one order, too,
// and who makes a Group's call has those on other streams done, or waited for by
// Config.Stream.
func (e *Engine) Queued(ctx context.Context, c collective.Call, dst, src collective.Vector) func(cuda.Stream) error {
	return func(s cuda.Stream) error { return e.queueOn(ctx, s, c, dst, src) }
}

func (e *Engine) queueOn(ctx context.Context, s cuda.Stream, c collective.Call, dst, src collective.Vector) error {
	if !e.busy.TryLock() {
		if e.link.closing.Load() {
			return collective.ErrClosed
		}
		return fmt.Errorf("ncclgroup: queueing %v: %w", c, collective.ErrConcurrent) // to wait here, on the device's thread, could be for ever
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
		return fmt.Errorf("ncclgroup: queueing %v: %w: let the Group make a call before", c, collective.ErrUnsupported)
	}
	commands := e.seat.commands(&calls[0])
	if len(commands) == 0 {
		return nil
	}
	if err := e.lane.queueUnmarked(ctx, s, commands); err != nil {
		return e.named(e.blame(ctx, err))
	}
	return nil
}

// Broken is closed when the engine is broken, be it by another rank. What Queue
// put on the stream ends then, with garbage. Graphs in which it was captured are to
// be destroyed now: NCCL keeps a thread until they are.
func (e *Engine) Broken() <-chan struct{} { return e.link.broken }

// Err is what broke the engine, with the culprit if that is known; nil while it
// is whole.
func (e *Engine) Err() error {
	if !e.link.over() {
		return nil
	}
	if err := e.base.Err(); err != nil {
		return e.named(err)
	}
	return e.named(e.link.cause)
}

// sameMemory reports whether two vectors of a call are one.
func sameMemory(a, b collective.Vector) bool {
	return a.Bytes() == b.Bytes() && at(a) == at(b) && hostAddress(a) == hostAddress(b)
}

func hostAddress(v collective.Vector) *byte {
	b, _ := v.Host()
	return unsafe.SliceData(b)
}
