// Package nccl wraps NVIDIA's NCCL, which moves and reduces vectors between GPUs. Each
// function of NCCL is one Go function or method of the same name.
//
// The library is loaded when first used, see [Available]. It must be version 2.19.3 or
// newer. All communicators are non-blocking, so that a peer that never joins does not block a
// thread.
//
// # Non-blocking communicators
//
// A call returns before its work is done, and often before it has begun. After [InitRank],
// [Comm.Finalize], [Comm.Split], a collective or a [Comm.Group], poll [Comm.AsyncError] until
// it no longer returns [ErrInProgress]. Until then make no other call on the communicator,
// and queue nothing on the stream.
//
// # Threads
//
// The device's context must be current on the calling thread, so make calls inside
// [cuda.Device.Do]. Only AsyncError and LastError may be called on any thread. Never make two
// calls on one communicator at the same time, not even Abort.
//
// # Failures
//
// A collective whose peer has died never ends, and NCCL reports no error. Each rank must
// detect this by other means and call [Comm.Abort], as package ncclgroup does.
package nccl
