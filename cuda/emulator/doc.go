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
// In host code it finds the following mistakes:
//
//   - Use of memory that was never written. Such memory is full of NaNs, as is shared memory.
//   - Copies beyond an allocation, and use after free.
//   - Missing waits. Work starts only when the host waits or queries, or after a while.
//   - Calls in the wrong context or without one, and use of destroyed handles.
//   - Calls that CUDA forbids in a capture. They return CUDA's error.
//
// It finds missing dependencies between streams. A graph's branches run as late as its edges
// allow, and at the next launch as early. A stream of high priority begins some of its work at
// once, and the rest as late as possible. So a missing wait, in either direction, gives wrong
// results.
//
// NCCL connects processes of one host, or goroutines of one process. A collective whose
// peer is dead does not end until the communicator is aborted. Peers whose calls differ get
// an asynchronous error, and their calls do not end either. As with NCCL, a rank that is aborted
// while it waits for its peers stops waiting, and their calls end too, without an error but with
// wrong results. Neither Abort nor Destroy returns while a graph holds the communicator.
//
// There are versions 8 and 9 of cuDNN. Algorithms that are not deterministic, or that transform
// their operands, give different results. cuDNN refuses workspaces that are too small,
// descriptors that do not match, and the first use of an algorithm in a capture. Like NVIDIA's,
// it aborts the process if a library that it opens by name is missing.
//
// # What it cannot find
//
// It cannot find races between blocks that need another order to show, divergence of warps
// that is specific to the hardware, weak memory order, or too many registers. Functions such
// as expf differ in the last digits. Use compute-sanitizer on a device for these.
//
// # Settings
//
//	RINGTRAIN_EMULATOR_DEVICES      number of devices (default 1)
//	RINGTRAIN_EMULATOR_MEMORY       bytes of each device (default 4 GiB)
//	RINGTRAIN_EMULATOR_DRIVER       CUDA version of the driver (default 13000); an older
//	                                driver loads PTX, but not the images of NVRTC
//	RINGTRAIN_EMULATOR_NCCL         version of NCCL (default 2.30.7); newer functions are
//	                                refused
//	RINGTRAIN_EMULATOR_NCCL_STUCK   1: ncclCommAbort does nothing and never returns
//	RINGTRAIN_EMULATOR_CUDNN        version of cuDNN (default 9.1.0 for libcudnn.so.9, 8.9.7
//	                                for libcudnn.so.8)
//	RINGTRAIN_EMULATOR_CUDNN_REFUSES
//	                                which call of cuDNN fails: create, heuristic, run or
//	                                capture (of algorithm 1); driver: cuDNN is for a newer
//	                                CUDA than the driver's
//	RINGTRAIN_EMULATOR_PATIENCE     milliseconds until a stream begins although the host
//	                                neither waits nor queries (default 20)
//	RINGTRAIN_EMULATOR_RACES        0: do not detect races, which is faster
//	RINGTRAIN_EMULATOR_GRAPHS       directory for drawings, in DOT, of all instantiated
//	                                graphs
//	RINGTRAIN_EMULATOR_NAME         name of the devices, without their number
//	RINGTRAIN_EMULATOR_LT           version of cuBLASLt (default 13.0.0); it does not start
//	                                with an older driver
//	RINGTRAIN_EMULATOR_LT_KERNELS   kernels per matrix product (default 1); 0: cuBLASLt has
//	                                no candidates
//	RINGTRAIN_EMULATOR_LT_PLAIN     1: no candidates with epilogues
//	RINGTRAIN_EMULATOR_LT_STATUS    status without candidates (default 15)
//	RINGTRAIN_EMULATOR_LT_REFUSES   numbers of the candidates that cublasLtMatmul refuses,
//	                                such as 02 (default none)
//	RINGTRAIN_EMULATOR_PTX          an image of the emulator's NVRTC, to load instead of PTX
//	                                with the same kernels
package emulator
