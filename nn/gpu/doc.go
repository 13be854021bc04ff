// Package gpu is the nn.Backend of an NVIDIA GPU: package cuda's memory, streams
// and matrix products, and the kernels of cuda/kernels. It equals nn/cpu within
// rounding, dropout and optimizers in every bit where their input is equal.
//
// A [Backend] works on the thread of its device: all methods but Do, Sync, Close
// and Abort are called from inside Do. Nothing that it is told to compute has
// been computed when the call returns. The first failure stops all that is queued
// later, until Sync has returned it.
//
// # Products
//
// A layer's bias and Relu, and their gradients, are epilogues of its products
// (nn.Fuser) where cuBLASLt has a kernel that does both, and kernels otherwise. With
// Options.Timed the faster form, and the fastest kernel, are found out; then
// [Backend.Choices] is what another run needs to have the same bits.
//
// With Options.BF16 factors are rounded to bfloat16 by a kernel, once for all the
// products they are in until they change, and cuBLASLt adds up in float32.
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
// Record runs its function once, as any other work, keeps the list of what was
// queued, and captures that list as a CUDA graph; the function it returns
// launches the graph. So a function is free to allocate temporary memory, and is
// called once; what it may not do is move numbers between host and device, which
// a repetition could not do again: copy to a Buffer before, and read after.
// Dropout in a recording draws from numbers in device memory, which
// [Backend.Redraw] moves on from step to step.
//
// # Whole steps
//
// With a Pace a recording holds whole steps, several if one likes: what differs
// from one to the next lies in device memory. The batch is gathered from a data
// set that lies there. The host computes hyper-parameters in float64, as for any
// backend, so they have the same bits; it does so for hundreds of steps at once
// and puts them into a table, of which the last kernel of a step takes the next
// row. The same kernel moves dropout on, and puts the loss into memory of the
// host, from where Losses reads it without a copy, while the device works on. All
// parameters are updated by two kernels ([Backend.AdamArena]). So a step is one
// launch of a graph, or a part of one, and nothing else; [Backend.Nodes] and
// [Backend.Calls] count.
//
// A sum over ranks is a part of the recording if it is queued by [Backend.Queue], or
// by [Backend.Aside], which has it done on a second stream while the backward pass
// goes on; [Backend.Join] comes before the update then.
// If it is broken off, [Backend.Abort] before it ends keeps its garbage out of the
// parameters. [Backend.Forget] ends recordings before what they use.
package gpu
