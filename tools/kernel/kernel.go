// Package kernel is what the generators of AVX2 kernels share. A kernel takes
// whole blocks of elements only and leaves the rest to a Go loop.
//
// The assembler names operands the other way round than Intel: the destination
// comes last, and the first source, whose NaN has precedence, before it.
package kernel

import (
	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// Vector is the size of a register in bytes.
const Vector = 32

// Unroll is how many blocks a turn of a wide loop takes.
const Unroll = 4

// Loops emits the loops of a kernel over n elements, Unroll blocks at a time
// and then one: step handles the k-th block at the pointers, advance moves them
// on by so many blocks.
func Loops(n reg.Register, block int, step func(k int), advance func(blocks int)) {
	loop("wide", "narrow", Unroll, n, block, step, advance)
	loop("narrow", "done", 1, n, block, step, advance)
	Label("done")
}

// Loop is Loops for a long step: one block at a time.
func Loop(n reg.Register, block int, step func(k int), advance func(blocks int)) {
	loop("narrow", "done", 1, n, block, step, advance)
	Label("done")
}

func loop(name, next string, count int, n reg.Register, block int, step func(k int), advance func(blocks int)) {
	Label(name)
	CMPQ(n, U32(count*block))
	JL(LabelRef(next))
	for k := range count {
		step(k)
	}
	advance(count)
	SUBQ(U32(count*block), n)
	JMP(LabelRef(name))
}

// End ends a kernel.
func End() {
	VZEROUPPER()
	RET()
}

// Begin begins a function that keeps no pointer and needs no stack.
func Begin(name, signature, doc string) {
	TEXT(name, NOSPLIT, "func"+signature)
	Pragma("noescape")
	Doc(doc)
}

// Base is the pointer of a slice parameter.
func Base(name string) Mem {
	return Mem{Base: Load(Param(name).Base(), GP64())}
}

// Length is the number of elements of a slice parameter.
func Length(name string) reg.Register {
	return Load(Param(name).Len(), GP64())
}

// Pointer is a pointer parameter.
func Pointer(name string) Mem {
	return Mem{Base: Load(Param(name), GP64())}
}

// Move moves pointers on by so many bytes.
func Move(bytes int, pointers ...Mem) {
	for _, p := range pointers {
		ADDQ(U32(uint32(bytes)), p.Base)
	}
}
