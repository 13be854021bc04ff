// Command foldgen writes the AVX2 kernels of collective/fold: the assembly and
// the Go declarations that belong to it. go generate in that package runs it.
//
// A kernel takes whole blocks only: a multiple of as many elements as are in a
// register, of 16 for a 16-bit format. The rest is left to the Go loops.
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
