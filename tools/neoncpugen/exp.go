package main

import "github.com/ringtrain/ringtrain/tools/neon"

// The registers of the constants of exp. nn/cpu/simd_arm64.go lists those up to one in this
// order, and then those of normal.
const (
	least = 16 + iota
	most
	log2e
	roundTo
	ln2Hi
	ln2Lo
	polynomial // and five more
	_
	_
	_
	_
	_
	one
	constants = iota
)

const (
	bias     = one + 1 // 127
	infinity = one + 2
	top      = one + 3
)

// The registers of what exp and normal compute.
const (
	exponent = iota // of exp; changed
	under
	over
	shifted
	whole
	product
	power // e to the exponent
	argument
	constant
	inverse
	tail
	cumulative // of the normal distribution
	negative
)

var lessThanZero = single("FCMLT zero", 0x4ea0e800)

// constants loads the constants of exp from R<from>, and advances the pointer.
func (g generator) constants(from int) {
	for i := range constants {
		g.Emit("VLD1R.P 4(R%d), [V%d.S4]", from, least+i)
	}
	g.Constant(bias, 127)
	g.Constant(infinity, 0x7f800000)
}

// exponential emits the steps of nn/cpu's exp.
func (g generator) exponential() {
	const x, p, half = exponent, power, product
	g.Three(greater, under, least, x)
	g.Three(greater, over, x, most)
	g.Three(mul, shifted, x, log2e)
	g.Three(add, shifted, shifted, roundTo)
	g.Three(sub, whole, shifted, roundTo)
	for _, ln2 := range []int{ln2Hi, ln2Lo} {
		g.Three(mul, product, whole, ln2)
		g.Three(sub, x, x, product)
	}
	g.Three(mul, p, polynomial, x)
	for i := range 5 {
		g.Three(add, p, p, polynomial+1+i)
		if i < 4 {
			g.Three(mul, p, p, x)
		}
	}
	g.Three(mul, product, x, x)
	g.Three(mul, p, p, product)
	g.Three(add, p, p, x)
	g.Three(add, p, p, one)
	// 2ⁿ in two factors.
	g.Emit("VSUB V%d.S4, V%d.S4, V%d.S4", roundTo, shifted, shifted)
	g.Two(neon.Op{Name: "SSHR $1,", Word: 0x4f3f0400}, half, shifted)
	g.Emit("VSUB V%d.S4, V%d.S4, V%d.S4", half, shifted, shifted)
	for _, k := range []int{half, shifted} {
		g.Emit("VADD V%d.S4, V%d.S4, V%d.S4", bias, k, k)
		g.Emit("VSHL $23, V%d.S4, V%d.S4", k, k)
		g.Three(mul, p, p, k)
	}
	g.Three(without, p, p, under)
	g.Three(where, p, infinity, over)
}

// where emits to = a where b is all ones.
var where = neon.Op{Name: "BIT", Shape: "B16", Word: 0x6ea01c00}

func (g generator) exp() {
	g.Begin("neonExp", "(y *float32, n int, top float32, c *[25]float32)", 32, "is expLoop for whole blocks.")
	g.Pointers("y", "n")
	g.broadcast("top", 16, top)
	g.Emit("MOVD c+24(FP), R2")
	g.constants(2)
	g.vectors(1, func() {
		g.one(0, exponent)
		g.Three(sub, exponent, exponent, top)
		g.exponential()
		g.put(power, 0)
	})
}

// normal emits the steps of nn/cpu's normal of the argument. R<from> points to the constants
// after those of exp. It leaves the one after its own in a register.
func (g generator) normal(from int) {
	g.Emit("MOVD R%d, R8", from)
	next := func() { g.Emit("VLD1R.P 4(R8), [V%d.S4]", constant) }
	next()
	g.Three(mul, exponent, argument, constant)
	g.Three(mul, exponent, exponent, argument)
	g.exponential()
	next()
	g.Two(abs, inverse, argument)
	g.Three(mul, inverse, inverse, constant)
	g.Three(add, inverse, inverse, one)
	g.Three(div, inverse, one, inverse)
	g.Emit("VLD1R.P 4(R8), [V%d.S4]", tail)
	for range 8 {
		next()
		g.Three(mul, tail, tail, inverse)
		g.Three(add, tail, tail, constant)
	}
	next()
	g.Three(mul, tail, tail, inverse)
	g.Three(mul, tail, tail, power)
	g.Three(sub, cumulative, one, tail)
	g.Two(lessThanZero, negative, argument)
	g.Three(where, cumulative, tail, negative)
}

func (g generator) gelu() {
	g.Begin("neonGelu", "(y, x *float32, n int, c *[25]float32)", 32, "is geluLoop for whole blocks.")
	g.Pointers("y", "x", "n", "c")
	g.constants(3)
	g.vectors(2, func() {
		g.Emit("VLD1.P 16(R1), [V%d.S4]", argument)
		g.normal(3)
		g.Three(mul, cumulative, cumulative, argument)
		g.put(cumulative, 0)
	})
}

func (g generator) geluGrad() {
	g.Begin("neonGeluGrad", "(dx, dy, x *float32, n int, c *[25]float32)", 40, "is geluGradLoop for whole blocks.")
	g.Pointers("dx", "dy", "x", "n", "c")
	g.constants(4)
	g.vectors(3, func() {
		g.Emit("VLD1.P 16(R2), [V%d.S4]", argument)
		g.normal(4)
		g.Three(mul, power, power, constant)
		g.Three(mul, power, power, argument)
		g.Three(add, cumulative, cumulative, power)
		g.Emit("VLD1.P 16(R1), [V%d.S4]", argument)
		g.Three(mul, cumulative, cumulative, argument)
		g.put(cumulative, 0)
	})
}
