// Package nccl calls NVIDIA's NCCL, which moves and reduces vectors between
// GPUs: one Go function or method for each function of it, under its name.
//
// The library is loaded when first used, see [Available]. It must be of version
// 2.14.3 or newer: every communicator is made non-blocking, so that a peer that
// never comes costs no thread, and older versions have only the other kind. What
// came later is absent where the library lacks it.
//
// # Non-blocking communicators
//
// A call returns before its work is done, and often before it is begun. After
// [InitRank], [Comm.Finalize], [Comm.Split], a collective, or a [Comm.Group] of
// them, nothing else may be done with the communicator, or queued on the stream,
// until [Comm.AsyncError] is no longer [ErrInProgress].
//
// # Threads
//
// The device's context is current on the thread that calls, so calls are made in
// [cuda.Device.Do]; AsyncError and LastError may be made anywhere. Two calls on
// one communicator are never made at once, and Abort is such a call.
//
// A collective whose peer has died never ends by itself, and NCCL tells nobody:
// each rank must find out by other means, and call [Comm.Abort]. Package
// ncclgroup does.
package nccl
