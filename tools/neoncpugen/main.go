// Command neoncpugen writes the NEON kernels of nn/cpu: the assembly and its Go
// declarations. go generate in that package runs it. Kernels take a multiple of 16 elements.
//
// No product is fused with a sum, because the loops in Go round after every operation.
package main

import "github.com/ringtrain/ringtrain/tools/neon"

func single(name string, word int) neon.Op { return neon.Op{Name: name, Shape: "S4", Word: word} }

var (
	add       = single("FADD", 0x4e20d400)
	sub       = single("FSUB", 0x4ea0d400)
	mul       = single("FMUL", 0x6e20dc00)
	div       = single("FDIV", 0x6e20fc00)
	sqrt      = single("FSQRT", 0x6ea1f800)
	abs       = single("FABS", 0x4ea0f800)
	greatest  = single("FMAX", 0x4e20f400)
	greater   = single("FCMGT", 0x6ea0e400)      // all ones where a > b; not if one is NaN
	upToZero  = single("FCMLE zero", 0x6ea0d800) // all ones where a <= 0
	without   = neon.Op{Name: "BIC", Shape: "B16", Word: 0x4e601c00}
	widen     = neon.Op{Name: "FCVTL", Word: 0x0e617800} // to float64
	addDouble = neon.Op{Name: "FADD", Shape: "D2", Word: 0x4e60d400}
	mulDouble = neon.Op{Name: "FMUL", Shape: "D2", Word: 0x6e60dc00}
)

// block is the number of elements in four registers.
const block = 16

type generator struct{ *neon.Writer }

func main() {
	g := generator{neon.New("neoncpugen", "cpu", "!noasm && !race")}
	neon.Main(g.Writer, func() {
		g.binary("neonAdd", "addLoop", add)
		g.binary("neonMax", "maxLoop", greatest)
		g.sum()
		g.scale()
		g.axpy()
		g.relu()
		g.reluGrad()
		g.dot()
		g.squares()
		g.adam()
		g.sgd()
		g.exp()
		g.gelu()
		g.geluGrad()
		g.dropout()
	})
}

// load loads a block from R<from> into four registers from V<to> on, and advances the pointer.
// store is the reverse.
func (g generator) load(from, to int) { g.Emit("VLD1.P 64(R%d), %s", from, neon.List(to, 4, "S4")) }

func (g generator) store(from, to int) { g.Emit("VST1.P %s, 64(R%d)", neon.List(from, 4, "S4"), to) }

// keep is load, but does not advance the pointer.
func (g generator) keep(from, to int) { g.Emit("VLD1 (R%d), %s", from, neon.List(to, 4, "S4")) }

// four emits an operation on the registers of a block.
func (g generator) four(o neon.Op, to, a, b int) {
	for i := range 4 {
		g.Three(o, to+i, a+i, b+i)
	}
}

// fourBy emits an operation of a block and one register.
func (g generator) fourBy(o neon.Op, to, a, b int) {
	for i := range 4 {
		g.Three(o, to+i, a+i, b)
	}
}

// broadcast loads a float32 argument into every lane of a register.
func (g generator) broadcast(arg string, at, to int) {
	g.Emit("FMOVS %s+%d(FP), F%d", arg, at, to)
	g.Emit("VDUP V%d.S[0], V%d.S4", to, to)
}

// binary emits a kernel that sets y to y op v.
func (g generator) binary(name, loop string, o neon.Op) {
	g.Begin(name, "(y, v *float32, n int)", 24, "is "+loop+" for whole blocks.")
	g.Pointers("y", "v", "n")
	g.Blocks(2, block, func() {
		g.keep(0, 0)
		g.load(1, 4)
		g.four(o, 0, 0, 4)
		g.store(0, 0)
	})
	g.Emit("RET")
}

func (g generator) sum() {
	g.Begin("neonSum", "(y, x, z *float32, n int)", 32, "is sumLoop for whole blocks.")
	g.Pointers("y", "x", "z", "n")
	g.Blocks(3, block, func() {
		g.load(1, 0)
		g.load(2, 4)
		g.four(add, 0, 0, 4)
		g.store(0, 0)
	})
	g.Emit("RET")
}

func (g generator) scale() {
	g.Begin("neonScale", "(y *float32, n int, a float32)", 20, "is scaleLoop for whole blocks.")
	g.Pointers("y", "n")
	g.broadcast("a", 16, 30)
	g.Blocks(1, block, func() {
		g.keep(0, 0)
		g.fourBy(mul, 0, 0, 30)
		g.store(0, 0)
	})
	g.Emit("RET")
}

func (g generator) axpy() {
	g.Begin("neonAxpy", "(y, x *float32, n int, a float32)", 28, "is axpyLoop for whole blocks.")
	g.Pointers("y", "x", "n")
	g.broadcast("a", 24, 30)
	g.Blocks(2, block, func() {
		g.keep(0, 0)
		g.load(1, 4)
		g.fourBy(mul, 4, 4, 30)
		g.four(add, 0, 0, 4)
		g.store(0, 0)
	})
	g.Emit("RET")
}

// clear emits a = 0 where b <= 0, for the registers of a block. It changes V20 to V23.
func (g generator) clear(a, b int) {
	for i := range 4 {
		g.Two(upToZero, 20+i, b+i)
	}
	g.four(without, a, a, 20)
}

func (g generator) relu() {
	g.Begin("neonRelu", "(y, x *float32, n int)", 24, "is reluLoop for whole blocks.")
	g.Pointers("y", "x", "n")
	g.Blocks(2, block, func() {
		g.load(1, 0)
		g.clear(0, 0)
		g.store(0, 0)
	})
	g.Emit("RET")
}

func (g generator) reluGrad() {
	g.Begin("neonReluGrad", "(dx, dy, y *float32, n int, scale float32)", 36, "is reluGradLoop for whole blocks.")
	g.Pointers("dx", "dy", "y", "n")
	g.broadcast("scale", 32, 30)
	g.Blocks(3, block, func() {
		g.load(1, 0)
		g.load(2, 4)
		g.fourBy(mul, 0, 0, 30)
		g.clear(0, 4)
		g.store(0, 0)
	})
	g.Emit("RET")
}

// dot adds the products x·y to 16 sums: element i to sum i mod 16.
func (g generator) dot() {
	g.Begin("neonDot", "(sums *[16]float32, x, y *float32, n int)", 32, "is dotLoop for whole blocks.")
	g.Pointers("sums", "x", "y", "n")
	g.keep(0, 16)
	g.Blocks(3, block, func() {
		g.load(1, 0)
		g.load(2, 4)
		g.four(mul, 0, 0, 4)
		g.four(add, 16, 16, 0)
	})
	g.store(16, 0)
	g.Emit("RET")
}

// squares adds the squares of scale·g + l2·w to 16 sums in float64: element i to sum i mod 16.
func (g generator) squares() {
	g.Begin("neonSquares", "(sums *[16]float64, grad, w *float32, n int, scale, l2 float32)", 40, "is squaresLoop for whole blocks.")
	g.Pointers("sums", "grad", "w", "n")
	g.broadcast("scale", 32, 30)
	g.broadcast("l2", 36, 31)
	g.Emit("VLD1.P 64(R0), %s", neon.List(16, 4, "D2"))
	g.Emit("VLD1 (R0), %s", neon.List(20, 4, "D2"))
	g.Emit("SUB $64, R0")
	g.Blocks(3, block, func() {
		g.load(1, 0)
		g.load(2, 4)
		g.fourBy(mul, 0, 0, 30)
		g.fourBy(mul, 4, 4, 31)
		g.four(add, 0, 0, 4)
		for i := range 4 {
			for half, o := range []neon.Op{widen, widen.Upper()} {
				sum, wide := 16+2*i+half, 24+half
				g.Two(o, wide, i)
				g.Three(mulDouble, wide, wide, wide)
				g.Three(addDouble, sum, sum, wide)
			}
		}
	})
	g.Emit("VST1.P %s, 64(R0)", neon.List(16, 4, "D2"))
	g.Emit("VST1 %s, (R0)", neon.List(20, 4, "D2"))
	g.Emit("RET")
}

// The registers of the terms of an update. nn/cpu/adam.go has the same list.
const (
	termScale = 16 + iota
	termClip
	termL2
	termRate
	termDecay
	termShare
	termEps
	termBeta1
	termMix1
	termBeta2
	termMix2
	termCount = iota
	smallest  = 16 + termCount // the smallest normal number
)

// The registers of one vector of an update.
const (
	weight = iota
	gradient
	first
	second
	spare
	other
)

// terms loads the terms that R<from> points to, each into every lane of its register.
func (g generator) terms(from int) {
	for i := range termCount {
		g.Emit("VLD1R.P 4(R%d), [V%d.S4]", from, termScale+i)
	}
	g.Constant(smallest, 0x00800000)
}

// vectors emits the loop of an update, one vector at a time.
func (g generator) vectors(left int, body func()) {
	g.Blocks(left, 4, body)
	g.Emit("RET")
}

func (g generator) one(from, to int) { g.Emit("VLD1 (R%d), [V%d.S4]", from, to) }

func (g generator) put(from, to int) { g.Emit("VST1.P [V%d.S4], 16(R%d)", from, to) }

// clipped sets the gradient to clip·(scale·g + l2·w).
func (g generator) clipped() {
	g.Three(mul, gradient, gradient, termScale)
	g.Three(mul, spare, weight, termL2)
	g.Three(add, gradient, gradient, spare)
	g.Three(mul, gradient, gradient, termClip)
}

// moved sets w to w - V<by>, subtracts decay times the result, and stores it.
func (g generator) moved(by, to int) {
	g.Three(sub, weight, weight, by)
	g.Three(mul, spare, weight, termDecay)
	g.Three(sub, weight, weight, spare)
	g.put(weight, to)
}

// follow sets the average to a - share·(a-w), unless its pointer is nil.
func (g generator) follow(a int) {
	g.Emit("CBZ R%d, next", a)
	g.one(a, spare)
	g.Three(sub, other, spare, weight)
	g.Three(mul, other, other, termShare)
	g.Three(sub, spare, spare, other)
	g.put(spare, a)
	g.Label("next")
}

// flush sets a moment to 0 if its magnitude, in V<magnitude>, is less than the smallest
// normal number.
func (g generator) flush(moment, magnitude int) {
	g.Three(greater, other, smallest, magnitude)
	g.Three(without, moment, moment, other)
}

func (g generator) adam() {
	g.Begin("neonAdam", "(w, grad, m, v, a *float32, n int, terms *terms)", 56, "is adamLoop for whole blocks. a is nil if there are no averages.")
	g.Pointers("w", "grad", "m", "v", "a", "n", "terms")
	g.terms(6)
	g.vectors(5, func() {
		g.one(0, weight)
		g.Emit("VLD1.P 16(R1), [V%d.S4]", gradient)
		g.one(2, first)
		g.one(3, second)
		g.clipped()
		g.Three(mul, first, first, termBeta1)
		g.Three(mul, spare, gradient, termMix1)
		g.Three(add, first, first, spare)
		g.Three(mul, second, second, termBeta2)
		g.Three(mul, spare, gradient, termMix2)
		g.Three(mul, spare, spare, gradient)
		g.Three(add, second, second, spare)
		g.Two(abs, spare, first)
		g.flush(first, spare)
		g.flush(second, second)
		g.put(first, 2)
		g.put(second, 3)
		g.Three(mul, first, first, termRate)
		g.Two(sqrt, second, second)
		g.Three(add, second, second, termEps)
		g.Three(div, first, first, second)
		g.moved(first, 0)
		g.follow(4)
	})
}

func (g generator) sgd() {
	g.Begin("neonSGD", "(w, grad, a *float32, n int, terms *terms)", 40, "is sgdLoop for whole blocks. a is nil if there are no averages.")
	g.Pointers("w", "grad", "a", "n", "terms")
	g.terms(4)
	g.vectors(3, func() {
		g.one(0, weight)
		g.Emit("VLD1.P 16(R1), [V%d.S4]", gradient)
		g.clipped()
		g.Three(mul, gradient, gradient, termRate)
		g.moved(gradient, 0)
		g.follow(2)
	})
}
