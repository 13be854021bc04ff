// Package sgemm multiplies float32 matrices, on one thread, with the same bits on every
// processor.
//
// # Order of operations
//
// The inner dimension is split into blocks of Block elements; the last one may be shorter.
// Within a block, an element of the product is a chain of fused multiply-adds in ascending
// order:
//
//	sum = 0
//	sum = fma(a[i,k], b[k,j], sum)   for k in the block
//
// Each fma rounds once, to the nearest float32. The sums of the blocks are added to C in
// ascending order, each with one float32 addition. Without an old C, the first sum is stored
// instead. Nothing else takes part: not the width of registers, the neighbouring elements,
// the layout of the matrices or their addresses.
//
// So every implementation gives the same bits: AVX-512, AVX2 and NEON kernels, and plain Go,
// which computes the fused operation exactly. A result that is NaN is NaN everywhere, but
// its sign and payload differ between processors.
//
// The kernels follow Goto and van de Geijn, Anatomy of High-Performance Matrix
// Multiplication (2008): tiles of C stay in registers, while B streams from the L1 cache and
// A from L2.
package sgemm

//go:generate go -C ../../../tools run ./sgemmgen -out ../nn/cpu/sgemm/kernels_amd64.s -stubs ../nn/cpu/sgemm/kernels_amd64.go -pkg sgemm
//go:generate go -C ../../../tools run ./neongen -out ../nn/cpu/sgemm/kernels_arm64.s -stubs ../nn/cpu/sgemm/kernels_arm64.go
