// Command foldgen writes the AVX2 kernels of collective/fold: the assembly and its Go
// declarations. go generate in that package runs it.
//
// A kernel takes only whole blocks: a multiple of the elements in a register, or of 16
// for a 16-bit format. The Go loops do the rest.
package main

import . "github.com/mmcloughlin/avo/build"

func main() {
	ConstraintExpr("!noasm,!race")
	for _, f := range floats {
		into("sum"+f.suffix, f.name, f.lanes, f.add)
		into("prod"+f.suffix, f.name, f.lanes, f.mul)
		into("min"+f.suffix, f.name, f.lanes, f.extreme(f.min, f.or))
		into("max"+f.suffix, f.name, f.lanes, f.extreme(f.max, f.and))
		scale(f)
	}
	integers()
	sumAll32()
	meanAllInt32()
	meanAllUint8()
	widenHalf()
	widenBrain()
	roundHalf()
	roundBrain()
	Generate()
}
