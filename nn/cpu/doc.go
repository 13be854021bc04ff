// Package cpu is the reference [nn.Backend]: host memory and plain loops, with
// matrix products by a BLAS. The loop in each kernel is the specification that
// other backends are compared with.
//
// A kernel has finished when its call returns. Every sum is taken in an order
// that depends on shapes only, so results have the same bits on every run and
// for every GOMAXPROCS.
package cpu
