// Command cpugen writes the AVX2 kernels of nn/cpu: the assembly and the Go
// declarations that belong to it. go generate in that package runs it.
//
// A kernel takes whole blocks only: a multiple of 8 elements, of 16 where it
// says so. It rounds after every operation, as the Go loops do, so there is no
// fused multiply-add in it.
package main

import . "github.com/mmcloughlin/avo/build"

func main() {
	ConstraintExpr("!noasm,!race")
	add()
	scale()
	axpy()
	follow()
	relu()
	reluGrad()
	largest()
	dot()
	squares()
	adam()
	sgd()
	dropout()
	Generate()
}
