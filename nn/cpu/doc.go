// Package cpu is the reference [nn.Backend]: host memory and plain loops, with
// matrix products by OpenBLAS where the machine has it, and by gonum elsewhere.
// The loop in each kernel is the specification that other backends are compared
// with. On amd64 with AVX2 most elements go through assembly that has the same
// bits; the build tag noasm leaves it out, and so does the race detector, which
// cannot see into it.
//
// A kernel has finished when its call returns. Every sum is taken in an order
// that depends on shapes only, so results have the same bits on every run and
// for every GOMAXPROCS. OpenBLAS orders the sums of a product by the kind of
// processor too, and gonum by whether it was built with its assembly: machines
// agree in every bit if their Backend.BLAS is equal.
package cpu

//go:generate go -C ../../tools run ./cpugen -out ../nn/cpu/kernels_amd64.s -stubs ../nn/cpu/kernels_amd64.go -pkg cpu
