package nccl

import (
	"fmt"

	"github.com/ringtrain/ringtrain/cuda"
)

// A Comm is this process's end of a communicator. The zero Comm is no communicator. The
// package comment says when its methods may be called.
type Comm struct {
	handle uintptr // of an rt_nccl_end, which holds the ncclComm_t
}

// None reports whether c is the zero Comm.
func (c Comm) None() bool { return c.handle == 0 }

// failure returns a result as an *Error. It returns nil for Success, and for InProgress,
// which calls on a non-blocking communicator return.
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

// do calls a function on the communicator, and fails if c is the zero Comm.
func (c Comm) do(call string, fn func(handle uintptr) Result) error {
	if c.None() {
		return &Error{Call: call, Result: InvalidArgument, Text: "there is no communicator"}
	}
	return c.failure(call, fn(c.handle))
}

// GetUniqueID returns the ID of a new communicator. One rank calls it and sends the ID to
// the others. NCCL starts a thread in this process that waits for them.
func GetUniqueID() (UniqueID, error) {
	var id UniqueID
	if err := Available(); err != nil {
		return id, err
	}
	return id, Comm{}.failure("ncclGetUniqueId", getUniqueID(&id))
}

// InitRank begins to join a communicator of size ranks, with the device whose context is
// current. Poll AsyncError until it no longer returns ErrInProgress. Then the Comm is ready
// or, on another error, must be aborted.
func InitRank(size int, id UniqueID, rank int) (Comm, error) {
	if err := Available(); err != nil {
		return Comm{}, err
	}
	if size < 1 || rank < 0 || rank >= size {
		return Comm{}, fmt.Errorf("nccl: rank %d of %d: ranks must be from 0 to size-1", rank, size)
	}
	handle, r := initRank(size, &id, rank)
	return Comm{handle}, Comm{handle}.failure("ncclCommInitRankConfig", r)
}

// AsyncError returns nil if the communicator is idle and intact, and ErrInProgress if it is
// busy with the last call. Any other error means that the communicator is broken. Then only
// Abort may be called.
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

// LastError returns NCCL's last error message in this process, or "". It is for people to
// read, and may be about another communicator.
func (c Comm) LastError() string {
	if c.None() {
		return ""
	}
	return lastError(c.handle)
}

// Finalize begins to shut down the communicator once all queued work is done. All ranks must
// call it.
func (c Comm) Finalize() error { return c.do("ncclCommFinalize", finalize) }

// Destroy frees the communicator after Finalize. First destroy all graphs that captured it,
// or Destroy never returns. Do not use the Comm afterwards.
func (c Comm) Destroy() error {
	return c.gone("ncclCommDestroy", destroy)
}

// Abort stops all work of the communicator at once, including running kernels, and frees the
// communicator without the other ranks. Abort does not return until all graphs that captured
// the communicator have been destroyed, which another thread must do. Do not use the Comm
// afterwards.
func (c Comm) Abort() error {
	return c.gone("ncclCommAbort", abort)
}

// Split begins to make a communicator of the ranks that pass the same color, ordered by key.
// All ranks of c must call it. A rank with color -1 gets a Comm without a communicator, which
// it must Abort to free its memory. Poll c.AsyncError to learn when the new Comm is ready.
func (c Comm) Split(color, key int) (Comm, error) {
	var part Comm
	err := c.do("ncclCommSplit", func(h uintptr) (r Result) {
		part.handle, r = split(h, color, key)
		return r
	})
	return part, err
}

// gone calls a function that frees the communicator, and so does not ask it for LastError.
func (c Comm) gone(call string, fn func(handle uintptr) Result) error {
	if c.None() {
		return c.do(call, fn)
	}
	return Comm{}.failure(call, fn(c.handle))
}

// number calls a function that returns a number.
func (c Comm) number(call string, fn func(handle uintptr) (int, Result)) (n int, err error) {
	err = c.do(call, func(h uintptr) (r Result) {
		n, r = fn(h)
		return r
	})
	return n, err
}

// Count returns the number of ranks.
func (c Comm) Count() (int, error) {
	return c.number("ncclCommCount", count)
}

// UserRank returns this process's rank.
func (c Comm) UserRank() (int, error) {
	return c.number("ncclCommUserRank", userRank)
}

// CuDevice returns the index of the communicator's device.
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

// Broadcast queues a copy of count elements from the root's send to every rank's recv. recv
// may be send.
func (c Comm) Broadcast(send, recv cuda.Ptr, count int, t DataType, root int, s cuda.Stream) error {
	return c.one(s, Command{Kind: KindBroadcast, Type: t, Peer: int32(root), Send: send, Recv: recv, Count: uint64(count)})
}

// AllGather queues a copy of every rank's count elements to recv, in rank order. send may be
// this rank's piece of recv.
func (c Comm) AllGather(send, recv cuda.Ptr, count int, t DataType, s cuda.Stream) error {
	return c.one(s, Command{Kind: KindAllGather, Type: t, Send: send, Recv: recv, Count: uint64(count)})
}

// ReduceScatter queues the reduction of size*count elements over all ranks. Each rank gets its
// own count elements of the result in recv. recv may be this rank's piece of send.
func (c Comm) ReduceScatter(send, recv cuda.Ptr, count int, t DataType, op RedOp, s cuda.Stream) error {
	return c.one(s, Command{Kind: KindReduceScatter, Type: t, Op: op, Send: send, Recv: recv, Count: uint64(count)})
}

// Send queues sending count elements to a rank, which must call Recv.
func (c Comm) Send(send cuda.Ptr, count int, t DataType, to int, s cuda.Stream) error {
	return c.one(s, Command{Kind: KindSend, Type: t, Peer: int32(to), Send: send, Count: uint64(count)})
}

// Recv queues receiving count elements from a rank, which must call Send.
func (c Comm) Recv(recv cuda.Ptr, count int, t DataType, from int, s cuda.Stream) error {
	return c.one(s, Command{Kind: KindRecv, Type: t, Peer: int32(from), Recv: recv, Count: uint64(count)})
}

// AllToAll queues an exchange of pieces of count elements, of bytes bytes each. This rank
// sends piece r of send to rank r, and receives piece r of recv from rank r. It is a Group of
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

// Group queues commands as one operation, between ncclGroupStart and ncclGroupEnd. Sends and
// receives in a group do not wait for each other.
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
