// Command cpugen writes the AVX2 and AVX-512 kernels of nn/cpu: the assembly and its Go
// declarations. go generate in that package runs it.
//
// A kernel takes only whole blocks: a multiple of 8 elements, or of 16 where stated. It
// rounds after every operation, as the Go loops do, and so uses no fused multiply-add. All
// processors give the same bits.
package main

import . "github.com/mmcloughlin/avo/build"

func main() {
	ConstraintExpr("!noasm,!race")
	add()
	scale()
	axpy()
	relu()
	reluGrad()
	largest()
	dot()
	squares()
	squaresWide()
	for _, averages := range []bool{false, true} {
		adam(averages)
		sgd(averages)
	}
	dropout()
	exps()
	gelu()
	geluGrad()
	expsWide()
	geluWide()
	geluGradWide()
	sum()
	weights()
	weightsGrad()
	norm()
	normGrad()
	maxouts()
	Generate()
}
