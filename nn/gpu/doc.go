// Package gpu is the nn.Backend of an NVIDIA GPU: package cuda's memory, streams
// and matrix products, and the kernels of cuda/kernels. It equals nn/cpu within
// rounding, dropout and optimizers in every bit where their input is equal.
//
// A [Backend] works on the thread of its device: all methods but Do, Sync, Close
// and Abort are called from inside Do. Nothing that it is told to compute has
// been computed when the call returns. The first failure stops all that is queued
// later, until Sync has returned it.
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
package gpu
