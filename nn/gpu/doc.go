// Package gpu implements nn.Backend on an NVIDIA GPU, with package cuda's memory,
// streams and matrix products and the kernels of cuda/kernels. It matches nn/cpu
// within rounding. Dropout and optimizers match bit for bit if their inputs do.
//
// A [Backend] works on the thread of its device: call all methods but Do, Sync,
// Close, Abort and Resume from inside Do. Work is queued, and a call may return before
// the device has done it. After the first failure the Backend queues nothing more until
// Sync has returned that failure.
//
// # Products
//
// A layer's bias and Relu, and their gradients, are epilogues of its products
// (nn.Fuser) if cuBLASLt has a kernel that does both, and separate kernels
// otherwise. Options.Timed measures which form and which kernel is fastest. Another
// run then needs [Backend.Choices] to get the same bits.
//
// With Options.BF16 a kernel rounds factors to bfloat16, and cuBLASLt sums in float32.
// All products of a factor share its rounded copy until the factor changes.
//
// # Convolutions
//
// If cuDNN is installed, it computes convolutions with at least [LeastForCuDNN]
// multiply-adds, or with Options.Timed those for which it is faster. Our kernels compute the
// rest, and whatever cuDNN does not support. Only deterministic algorithms are used, in
// float32 or, with Options.TF32, in TF32. With cuDNN the bits of a row may depend on the
// number of rows.
//
// # Recordings
//
// Record runs its function once, like any other work, and captures what it queued as
// a CUDA graph. It returns a function that launches the graph. The recorded function
// may allocate temporary memory. It must not move data between host and device,
// because a graph cannot repeat that: copy to a Buffer before Record, and read
// after it. Dropout in a recording draws from a stream in device memory, which
// [Backend.Redraw] advances from step to step.
//
// # Whole steps
//
// With a Pace a recording holds one or more whole steps, because everything that
// differs between steps is in device memory:
//
//   - The batch is gathered from a data set on the device.
//   - The host computes hyper-parameters in float64, as for any backend, so they have
//     the same bits. It fills a table for hundreds of steps at once, and the last
//     kernel of each step takes the next row.
//   - The same kernel advances dropout and writes the loss to host memory. Losses
//     reads it there without a copy, while the device continues.
//   - Two kernels update all parameters ([Backend.AdamArena]).
//
// So a step is one graph launch, or part of one. [Backend.Nodes] and [Backend.Calls]
// count the work.
//
// A sum over ranks is part of the recording if it is queued with [Backend.Queue] or
// [Backend.Aside]. Aside runs it on a second stream during the backward pass; call
// [Backend.Join] before the update. If a rank interrupts its sums, those of all ranks can
// end with garbage, also where the host does not know of the failure. To keep it out of the
// parameters, let the ranks vote on each step (nn.Committer), and call [Backend.Abort] on a
// rank before you interrupt its sums. [Backend.Forget] ends recordings; call it before you
// close what they use.
package gpu
