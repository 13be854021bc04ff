// Command foldgen writes the AVX2 kernels of collective/fold: the assembly and
// the Go declarations that belong to it. go generate in that package runs it.
//
// A kernel takes whole blocks only: a multiple of 8 elements of float32, of 4
// of float64, of 16 of a 16-bit format. The rest is left to the Go loops.
package main

import . "github.com/mmcloughlin/avo/build"

func main() {
	ConstraintExpr("!noasm,!race")
	for _, f := range floats {
		into("sum", f, f.add)
		into("prod", f, f.mul)
		into("min", f, f.extreme(f.min, f.or))
		into("max", f, f.extreme(f.max, f.and))
		scale(f)
	}
	widenHalf()
	widenBrain()
	roundHalf()
	roundBrain()
	Generate()
}
