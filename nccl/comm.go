package nccl

import (
	"fmt"

	"github.com/ringtrain/ringtrain/cuda"
)

// A Comm is this process's end of a communicator. The zero Comm is none. See the
// package comment for when its methods may be called.
type Comm struct {
	handle uintptr // where the ncclComm_t is
}

// None reports whether c is the zero Comm.
func (c Comm) None() bool { return c.handle == 0 }

// failure makes an Error of a result. InProgress is no failure: it is what calls
// on a communicator that does not block return.
func (c Comm) failure(call string, r Result) error {
	if r == Success || r == InProgress {
		return nil
	}
	e := &Error{Call: call, Result: r, Text: errorString(r)}
	if last := c.LastError(); last != "" {
		e.Text += " (" + last + ")"
	}
	return e
}

// do calls a function of a communicator.
func (c Comm) do(call string, fn func(handle uintptr) Result) error {
	if c.None() {
		return &Error{Call: call, Result: InvalidArgument, Text: "there is no communicator"}
	}
	return c.failure(call, fn(c.handle))
}

// GetUniqueID draws the id of a new communicator. One rank calls it and tells the
// others; a thread of this process then waits for them.
func GetUniqueID() (UniqueID, error) {
	var id UniqueID
	if err := Available(); err != nil {
		return id, err
	}
	return id, Comm{}.failure("ncclGetUniqueId", getUniqueID(&id))
}

// InitRank begins to join the communicator of an id as one of size ranks, with
// the device whose context is current. When AsyncError is no longer ErrInProgress
// the Comm is ready, or it has failed and is to be aborted.
func InitRank(size int, id UniqueID, rank int) (Comm, error) {
	if err := Available(); err != nil {
		return Comm{}, err
	}
	if size < 1 || rank < 0 || rank >= size {
		return Comm{}, fmt.Errorf("nccl: rank %d of %d: ranks are from 0 to size-1", rank, size)
	}
	handle, r := initRank(size, &id, rank)
	return Comm{handle}, Comm{handle}.failure("ncclCommInitRankConfig", r)
}

// AsyncError is nil if the communicator is idle and whole, ErrInProgress if it is
// busy with the last call, and otherwise what broke it; then only Abort is left.
func (c Comm) AsyncError() error {
	const call = "ncclCommGetAsyncError"
	var state Result
	err := c.do(call, func(h uintptr) (r Result) {
		state, r = asyncError(h)
		return r
	})
	switch {
	case err != nil:
		return err
	case state == InProgress:
		return ErrInProgress
	}
	return c.failure(call, state)
}

// LastError is what NCCL last said about a failure in this process, or "". It is
// for people, and may be of another communicator.
func (c Comm) LastError() string {
	if c.None() {
		return ""
	}
	return lastError(c.handle)
}

// Finalize begins to end the communicator, after all that is queued is done. The
// other ranks call it too.
func (c Comm) Finalize() error { return c.do("ncclCommFinalize", finalize) }

// Destroy frees the communicator, after Finalize. Graphs in which it was captured
// have been destroyed before, or it never returns. The Comm is none afterwards.
func (c Comm) Destroy() error {
	return c.gone("ncclCommDestroy", destroy)
}

// Abort ends what is under way, kernels too, and frees the communicator without
// the other ranks. The Comm is none afterwards. Work ends at once, but Abort
// returns only when the graphs in which the communicator was captured have been
// destroyed, on another thread.
func (c Comm) Abort() error {
	return c.gone("ncclCommAbort", abort)
}

// Split begins to make a communicator of the ranks that give the same color, in
// the order of key; all ranks of c call it. A color of -1 takes no part, and gets
// no communicator, only what Abort frees. Ask c whether it is done: the new Comm is
// there then. ErrAbsent before 2.18.1.
func (c Comm) Split(color, key int) (Comm, error) {
	if !Splits() {
		return Comm{}, fmt.Errorf("ncclCommSplit: %w", ErrAbsent)
	}
	var part Comm
	err := c.do("ncclCommSplit", func(h uintptr) (r Result) {
		part.handle, r = split(h, color, key)
		return r
	})
	return part, err
}

// gone calls a function after which there is no communicator to ask.
func (c Comm) gone(call string, fn func(handle uintptr) Result) error {
	if c.None() {
		return c.do(call, fn)
	}
	return Comm{}.failure(call, fn(c.handle))
}

// number calls a function that returns one.
func (c Comm) number(call string, fn func(handle uintptr) (int, Result)) (n int, err error) {
	err = c.do(call, func(h uintptr) (r Result) {
		n, r = fn(h)
		return r
	})
	return n, err
}

// Count is the number of ranks.
func (c Comm) Count() (int, error) {
	return c.number("ncclCommCount", count)
}

// UserRank is this process's rank.
func (c Comm) UserRank() (int, error) {
	return c.number("ncclCommUserRank", userRank)
}

// CuDevice is the index of the communicator's device.
func (c Comm) CuDevice() (int, error) {
	return c.number("ncclCommCuDevice", cuDevice)
}

// AllReduce queues the reduction of count elements over all ranks, to recv on
// each. recv may be send.
func (c Comm) AllReduce(send, recv cuda.Ptr, count int, t DataType, op RedOp, s cuda.Stream) error {
	return c.one(s, Command{Kind: KindAllReduce, Type: t, Op: op, Send: send, Recv: recv, Count: uint64(count)})
}

// Reduce queues the reduction of count elements over all ranks, to recv on the
// root. recv may be send.
func (c Comm) Reduce(send, recv cuda.Ptr, count int, t DataType, op RedOp, root int, s cuda.Stream) error {
	return c.one(s, Command{Kind: KindReduce, Type: t, Op: op, Peer: int32(root), Send: send, Recv: recv, Count: uint64(count)})
}

// Broadcast queues a copy of count elements of the root's send to every rank's
// recv. recv may be send.
func (c Comm) Broadcast(send, recv cuda.Ptr, count int, t DataType, root int, s cuda.Stream) error {
	return c.one(s, Command{Kind: KindBroadcast, Type: t, Peer: int32(root), Send: send, Recv: recv, Count: uint64(count)})
}

// AllGather queues copies of each rank's count elements, in rank order, to recv.
// send may be this rank's piece of recv.
func (c Comm) AllGather(send, recv cuda.Ptr, count int, t DataType, s cuda.Stream) error {
	return c.one(s, Command{Kind: KindAllGather, Type: t, Send: send, Recv: recv, Count: uint64(count)})
}

// ReduceScatter queues the reduction of size times count elements over all ranks,
// of which each gets its count to recv. recv may be this rank's piece of send.
func (c Comm) ReduceScatter(send, recv cuda.Ptr, count int, t DataType, op RedOp, s cuda.Stream) error {
	return c.one(s, Command{Kind: KindReduceScatter, Type: t, Op: op, Send: send, Recv: recv, Count: uint64(count)})
}

// Send queues sending count elements to a rank, which calls Recv.
func (c Comm) Send(send cuda.Ptr, count int, t DataType, to int, s cuda.Stream) error {
	return c.one(s, Command{Kind: KindSend, Type: t, Peer: int32(to), Send: send, Count: uint64(count)})
}

// Recv queues receiving count elements from a rank, which calls Send.
func (c Comm) Recv(recv cuda.Ptr, count int, t DataType, from int, s cuda.Stream) error {
	return c.one(s, Command{Kind: KindRecv, Type: t, Peer: int32(from), Recv: recv, Count: uint64(count)})
}

// AllToAll queues sending each rank its piece of send, of count elements of bytes
// bytes each, and receiving at recv what the others have for this one: a Group of
// Sends and Recvs.
func (c Comm) AllToAll(send, recv cuda.Ptr, count, bytes int, t DataType, s cuda.Stream) error {
	size, err := c.Count()
	if err != nil {
		return err
	}
	commands := make([]Command, 0, 2*size)
	for r := range size {
		at := cuda.Ptr(r * count * bytes)
		commands = append(commands,
			Command{Kind: KindSend, Type: t, Peer: int32(r), Send: send + at, Count: uint64(count)},
			Command{Kind: KindRecv, Type: t, Peer: int32(r), Recv: recv + at, Count: uint64(count)})
	}
	return c.Group(s, commands)
}

// Group queues commands as one operation, between ncclGroupStart and
// ncclGroupEnd: sends and receives among them do not wait for each other.
func (c Comm) Group(s cuda.Stream, commands []Command) error {
	if len(commands) == 0 {
		return nil
	}
	if c.None() {
		return c.do(commands[0].Kind.String(), nil)
	}
	at, r := run(c.handle, s.Handle(), commands, true)
	call := "ncclGroupEnd"
	if at < len(commands) {
		call = commands[at].Kind.String()
	}
	return c.failure(call, r)
}

func (c Comm) one(s cuda.Stream, command Command) error {
	return c.do(command.Kind.String(), func(h uintptr) Result {
		_, r := run(h, s.Handle(), []Command{command}, false)
		return r
	})
}
