// Package emulator builds replacements for the CUDA driver, NVRTC, cuBLASLt, cuDNN and
// NCCL that run on the CPU, so that GPU code can be tested without a GPU. Programs load
// them like the real libraries, through environment variables, see [Build].
//
// NVRTC compiles kernels with g++ and a header that replaces CUDA's built-ins. The driver
// runs them with one fiber per thread, one block at a time.
//
// # What it finds
//
// In kernels it finds loads and stores outside of all memory (ILLEGAL_ADDRESS) or at
// misaligned addresses (MISALIGNED_ADDRESS), two threads that access the same word without
// a barrier, and barriers and shuffles that some threads never reach (both LAUNCH_FAILED).
// It prints what happened and where to stderr. As on a device every later call then returns
// the same error. A launch also fails if its blocks have more threads than are certain to
// get registers: 256, or the number in __launch_bounds__.
//
// The host: memory that was never written (it is full of NaNs, as is shared
// memory), copies that leave their memory, use after free, a missing wait (work
// starts when somebody waits or asks, or after a while), calls in the wrong context
// or none, handles that are gone, and in captures whatever CUDA forbids, with the
// error that CUDA gives.
//
// Streams that forget to wait for each other: what a graph has on a branch runs as
// late as its edges allow, and at the next launch as early; a stream of high
// priority begins some of its work at once and leaves the rest until it must, so
// that either mistake gives wrong results.
//
// NCCL connects processes of one host, or goroutines of one process. A collective whose
// peer is dead does not end until the communicator is aborted. Peers whose calls differ get
// an asynchronous error, and their calls do not end either. Neither Abort nor Destroy
// returns while a graph holds the communicator.
//
// cuDNN 8 and 9: algorithms that are not deterministic or transform numbers, because their
// results differ; workspaces that are too small or read by others; the first use of an
// algorithm in a capture; descriptors that do not fit. Like cuDNN it aborts the process
// if a library that it opens by name is missing.
//
// # What it cannot find
//
// It cannot find races between blocks that need another order to show, divergence of warps
// that is specific to the hardware, weak memory order, or too many registers. Functions such
// as expf differ in the last digits. Use compute-sanitizer on a device for these.
//
// # Settings
//
//	RINGTRAIN_EMULATOR_DEVICES      devices, 1 unless set; 0: no device
//	RINGTRAIN_EMULATOR_MEMORY       bytes of each, 4 GiB unless set
//	RINGTRAIN_EMULATOR_DRIVER       version of the driver, 13000 unless set; an older
//	                                one loads PTX, and not what NVRTC makes
//	RINGTRAIN_EMULATOR_NCCL         version of NCCL that it passes for, 2.30.7 unless
//	                                set; what came later is refused
//	RINGTRAIN_EMULATOR_NCCL_STUCK   1: ncclCommAbort does nothing, and never returns
//	RINGTRAIN_EMULATOR_CUDNN        version of cuDNN that it says it is, unless set
//	                                9.1.0, and 8.9.7 of libcudnn.so.8, which lies beside it
//	RINGTRAIN_EMULATOR_CUDNN_REFUSES
//	                                what cuDNN refuses: create, heuristic, run,
//	                                capture (algorithm 1 in one), or driver, as too old
//	RINGTRAIN_EMULATOR_PATIENCE     milliseconds before a stream that nobody asked
//	                                begins, 20 unless set
//	RINGTRAIN_EMULATOR_RACES        0: do not look for races, which is faster
//	RINGTRAIN_EMULATOR_GRAPHS       a directory: each graph is drawn there in DOT when
//	                                it is instantiated
//	RINGTRAIN_EMULATOR_NAME         of the devices, before their number
//	RINGTRAIN_EMULATOR_LT           version of cuBLASLt that it passes for, 13.0.0
//	                                unless set; it does not start with an older driver
//	RINGTRAIN_EMULATOR_LT_KERNELS   kernels of a matrix product, 1 unless set; 0: there
//	                                is none for any
//	RINGTRAIN_EMULATOR_LT_PLAIN     1: matrix products have no epilogues
//	RINGTRAIN_EMULATOR_LT_STATUS    what is returned where there is no kernel, 15 unless
//	                                set; 0: success, and no candidate
//	RINGTRAIN_EMULATOR_LT_REFUSES   numbers of the candidates that cublasLtMatmul refuses,
//	                                such as 02; none unless set
//	RINGTRAIN_EMULATOR_PTX          an image of NVRTC's stand-in, to be loaded in
//	                                place of PTX that has the same kernels
package emulator
