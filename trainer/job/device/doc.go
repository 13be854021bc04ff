// Package device is where the workers of a job compute: on the CPU or on GPUs. It
// chooses a GPU for each worker ([Choice.Place]), opens it ([Open]), and makes engines
// of groups that add up on GPUs, by NCCL or through the memory of the host
// ([Accelerator], [EngineOf]).
//
// It is the only package of a job that knows CUDA and NCCL. A program built without
// the tag gpu has it, too, and is told that there is no GPU.
package device
