// Package device puts the workers of a job on the CPU or on GPUs. It chooses a GPU for
// each worker ([Choice.Place]), opens it ([Open]), and makes engines for groups whose
// vectors are in GPU memory, summed by NCCL or through host memory ([Accelerator],
// [EngineOf]).
//
// It is the only package of a job that uses CUDA and NCCL. Without the build tag gpu it
// reports that there is no GPU.
package device
