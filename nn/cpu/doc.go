// Package cpu is the reference [nn.Backend]: host memory and plain Go loops. Matrix
// products are those of package sgemm, or OpenBLAS's (see EnvOpenBLAS). The loop in each
// kernel is the specification for other backends. On amd64 with AVX2 or AVX-512, assembly
// with the same bits handles most elements, and on arm64 those of updates, of dropout and
// of simple loops. The build tag noasm disables it, and so does the race detector, which
// cannot see into assembly.
//
// A kernel has finished when its call returns. The order of every sum depends only
// on shapes, so results have the same bits on every run and for every GOMAXPROCS.
// One exception: in OpenBLAS the order also depends on the version and the processor
// type. Machines whose Backend.BLAS is equal agree in every bit.
package cpu

//go:generate go -C ../../tools run ./cpugen -out ../nn/cpu/kernels_amd64.s -stubs ../nn/cpu/kernels_amd64.go -pkg cpu
//go:generate go -C ../../tools run ./neoncpugen -out ../nn/cpu/kernels_arm64.s -stubs ../nn/cpu/kernels_arm64.go
