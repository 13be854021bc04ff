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
	if err := e.agree(ctx, calls); err != nil {
		return err
	}
	if !e.link.there() && !e.watch.over() {
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
	err := e.gpu.on(ctx, func() error {
		if err := e.uncaptured(); err != nil {
			return err
		}
		if err := e.queue(ctx, e.config.Stream, commands); err != nil {
			return err
		}
		return e.mark()
	})
	if err != nil {
		return err
	}
	return e.finish(ctx)
}

// mark ends what a call puts on the stream. It is done on.
func (e *Engine) mark() error {
	if err := e.gpu.mark(); err != nil {
		return err
	}
	e.use = marked
	return nil
}

// agree finds out that every rank concerned makes the same calls: otherwise NCCL
// would wait for ever, or move what is not meant.
func (e *Engine) agree(ctx context.Context, calls []started) error {
	switch s := &calls[0]; {
	case s.kind() == collective.KindSend:
		for i := range calls {
			nothing, err := collective.OfBytes(nil, calls[i].Header.Call.DType)
			if err != nil {
				return err
			}
			if err := e.base.Start(&collective.Operation{Header: calls[i].Header, Dst: nothing, Src: nothing}); err != nil {
				return err
			}
		}
		return e.base.Wait(ctx)
	case s.kind() == collective.KindAllToAll && s.Counts != nil:
		return e.agreeOnCounts(ctx, s)
	default:
		return e.base.Agree(ctx, s.Header)
	}
}

// agreeOnCounts tells every rank how much it will get from here, and compares
// with what it expects.
func (e *Engine) agreeOnCounts(ctx context.Context, s *started) error {
	sends, recvs := make([]int64, e.seat.size), make([]int64, e.seat.size)
	for r := range e.seat.size {
		sends[r] = int64(s.Counts[r])
	}
	if err := e.base.Start(&collective.Operation{Header: s.Header, Dst: collective.Of(recvs), Src: collective.Of(sends)}); err != nil {
		return err
	}
	if err := e.base.Wait(ctx); err != nil {
		return err
	}
	for r, got := range recvs {
		want := s.Counts[e.seat.size+r]
		if int64(want) == got {
			continue
		}
		differ := &collective.MismatchError{Self: e.seat.rank, Peer: r, Mine: s.Header, Theirs: s.Header}
		differ.Mine.Call.Count, differ.Theirs.Call.Count = uint64(want), uint64(got)
		e.base.Abort(&collective.RankError{Rank: r, Phase: "mismatch", Err: differ})
		return differ
	}
	return nil
}

// queue hands commands to NCCL and waits until it has queued them, which is when
// the ranks have connected as the commands need. It is done on.
func (e *Engine) queue(ctx context.Context, s cuda.Stream, commands []nccl.Command) error {
	e.use = unmarked
	if err := e.link.do(func(c communicator) error { return c.queue(s, commands) }); err != nil {
		return err
	}
	return e.until(ctx, pauseDevice, e.idle)
}

// finish waits for the mark.
func (e *Engine) finish(ctx context.Context) error {
	return e.gpu.aside(ctx, func() error { return e.until(ctx, pauseDevice, e.gpu.passed) })
}

// uncaptured refuses a call that waits, where the stream is being captured.
func (e *Engine) uncaptured() error {
	capturing, err := e.gpu.capturing(e.config.Stream)
	if err == nil && capturing {
		err = fmt.Errorf("ncclgroup: a Group's call in a capture: %w: Engine.Queue can be captured", collective.ErrUnsupported)
	}
	return err
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
		if e.closing.Load() {
			return collective.ErrClosed
		}
		return fmt.Errorf("ncclgroup: queueing %v: %w", c, collective.ErrConcurrent) // to wait here, on the device's thread, could be for ever
	}
	defer e.busy.Unlock()
	calls := []started{{Header: collective.Header{Call: c}, Dst: dst, Src: src}}
	switch {
	case e.closing.Load():
		return collective.ErrClosed
	case e.watch.over():
		return e.Err()
	case e.way(calls) != byNCCL || !e.Reaches(dst) || !e.Reaches(src):
		return fmt.Errorf("ncclgroup: queueing %v: %w", c, collective.ErrUnsupported)
	case !e.link.there():
		return fmt.Errorf("ncclgroup: queueing %v: %w: let the Group make a call before", c, collective.ErrUnsupported)
	}
	commands := e.seat.commands(&calls[0])
	if len(commands) == 0 {
		return nil
	}
	e.use = unused
	err := e.gpu.on(ctx, func() error {
		capturing, err := e.gpu.capturing(s)
		if err == nil {
			err = e.queue(ctx, s, commands)
		}
		if capturing { // so nothing is on the way
			e.use = unused
		}
		return err
	})
	if err != nil {
		return e.named(e.blame(ctx, err))
	}
	return nil
}

// Broken is closed when the engine is broken, be it by another rank. What Queue
// put on the stream ends then, with garbage. Graphs in which it was captured are to
// be destroyed now: NCCL keeps a thread until they are.
func (e *Engine) Broken() <-chan struct{} { return e.watch.broken }

// Err is what broke the engine, with the culprit if that is known; nil while it
// is whole.
func (e *Engine) Err() error {
	if !e.watch.over() {
		return nil
	}
	if err := e.base.Err(); err != nil {
		return e.named(err)
	}
	return e.named(e.watch.cause)
}

// sameMemory reports whether two vectors of a call are one.
func sameMemory(a, b collective.Vector) bool {
	return a.Bytes() == b.Bytes() && at(a) == at(b) && hostAddress(a) == hostAddress(b)
}

func hostAddress(v collective.Vector) *byte {
	b, _ := v.Host()
	return unsafe.SliceData(b)
}
