// Package cuda wraps the parts of CUDA that ringtrain uses: devices, streams, events,
// memory, kernels compiled at run time, matrix products with epilogues, convolutions,
// and graphs, which replay recorded work with one call.
//
// It works in programs built with -tags gpu and cgo on Linux. In other programs
// [Available], and everything else that returns an error, says why it does not.
//
// Programs with this package start without any CUDA library. The driver, NVRTC and
// cuBLASLt (versions 11 to 13) and cuDNN (8 or 9) are loaded when first used, see
// [Library]. Building needs CUDA's headers, which scripts/cuda-headers.sh finds or
// fetches.
//
// # Threads
//
// The driver has a current context per operating system thread, and a capture belongs to
// a thread, too. So each [Device] has one thread, and you do all its work there, inside
// [Device.Do]. Elsewhere a method returns CUDA_ERROR_INVALID_CONTEXT at best. Only
// [Device.Do] and [Device.Close] may be called from any goroutine.
//
// # Ownership
//
// The caller owns what New, Alloc, Load and Capture return, and must destroy it. There
// are no finalizers, because one that ran during a capture would invalidate it.
// [Device.Close] releases the device's primary context. That frees what is left in it,
// unless something else in the process holds the context.
//
// # Errors
//
// A failure is an [*Error] with the driver's own name and text. Kernels and copies run
// after the call that queues them, so a later call returns their failures, [Stream.Sync]
// at the latest. After a kernel has failed, for example with an illegal address, the
// context is unusable and every call returns the same error.
package cuda

//go:generate go -C ../tools run ./cudagen -in ../cuda/symbols.txt -out ../cuda/symbols_gpu.h
