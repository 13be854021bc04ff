// Package cuda is what ringtrain uses of NVIDIA GPUs: devices, streams, events,
// memory, kernels compiled at run time, matrix products with what follows them,
// and graphs, which are recordings of all of these that run again at one call.
//
// It works in programs built with -tags gpu, with cgo, on Linux; in others
// [Available] says why not, and so does everything that returns an error. Such a
// program needs no CUDA library to start. The driver, NVRTC and cuBLASLt are
// loaded when first used, by the names of their versions 11 to 13, and so is cuDNN, 9 or
// 8 ([Library]).
// CUDA's headers are needed to build: scripts/cuda-headers.sh finds or fetches
// them.
//
// # Threads
//
// The driver has a current context per operating system thread, and a capture
// belongs to a thread too. So everything that belongs to a [Device] is done on
// the one thread that the Device has, in [Device.Do]. A method called elsewhere
// returns CUDA_ERROR_INVALID_CONTEXT at best. Only [Device.Do] and [Device.Close]
// may be called from any goroutine.
//
// # Ownership
//
// What New, Alloc, Load and Capture return is destroyed by its owner, and by
// nobody else: there are no finalizers, because one that ran during a capture
// would spoil it. [Device.Close] releases the device's primary context, which
// frees what is left in it unless something else in the process holds the context.
//
// # Errors
//
// A failure is an [*Error] with the driver's own name and text. Kernels and
// copies run later than the call that asks for them, so their failures come from
// a later call, [Stream.Sync] at the latest. After an illegal address or another
// failure in a kernel the context is of no more use, and every call says the same.
package cuda

//go:generate go -C ../tools run ./cudagen -in ../cuda/symbols.txt -out ../cuda/symbols_gpu.h
