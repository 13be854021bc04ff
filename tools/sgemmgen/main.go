// Command sgemmgen writes the kernels of nn/cpu/sgemm for amd64: the assembly and its Go
// declarations. go generate in that package runs it.
//
// A product kernel is named for its instruction set, its rows and its registers per row,
// such as avx2Rows6x2. It keeps a tile of C in registers for the whole inner dimension.
// Packed kernels do that for packed A and B, dots kernels for a few rows and a transposed B,
// and narrow kernels for a few columns of it: a register of theirs has neighbouring rows of C.
package main

import (
	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// A set is an instruction set.
type set struct {
	name      string
	bytes     int // of a register
	vector    func() reg.VecVirtual
	registers int
	masks     bool     // stores and loads under a mask register
	shapes    []shape  // of product kernels
	packed    rowRange // no larger than the shape with as many registers per row
	dots      []rowRange
	narrow    []int // narrow[v]: the most columns of a narrow kernel with v registers of rows
}

// A shape is the largest kernel for a number of registers per row. There is one for every
// smaller number of rows, too.
type shape struct{ rows, vectors int }

// A rowRange is kernels for these numbers of rows, all with the same number of registers per
// row.
type rowRange struct{ from, to, vectors int }

var sets = []set{
	{"avx2", 32, YMM, 16, false, []shape{{12, 1}, {6, 2}, {3, 4}, {1, 8}}, rowRange{4, 6, 2}, []rowRange{{1, 5, 2}, {1, 1, 4}}, []int{1: 10}},
	{"avx512", 64, ZMM, 32, true, []shape{{14, 1}, {14, 2}, {6, 4}, {3, 8}}, rowRange{7, 14, 2}, []rowRange{{1, 8, 2}}, []int{1: 12, 2: 10}},
}

func main() {
	ConstraintExpr("!noasm")
	for _, s := range sets {
		for _, shape := range s.shapes {
			for rows := 1; rows <= shape.rows; rows++ {
				product(s, rows, shape.vectors)
			}
		}
		for rows := s.packed.from; rows <= s.packed.to; rows++ {
			packed(s, rows, s.packed.vectors)
		}
		copies(s)
		transposes(s)
		for _, d := range s.dots {
			for rows := d.from; rows <= d.to; rows++ {
				dots(s, rows, d.vectors)
			}
		}
		for vectors, most := range s.narrow {
			for columns := 1; columns <= most; columns++ {
				narrow(s, columns, vectors)
			}
		}
	}
	Generate()
}

// zero clears a register.
func (s set) zero(v reg.VecVirtual) {
	if s.masks { // VXORPS would need AVX512DQ
		VPXORD(v, v, v)
	} else {
		VXORPS(v, v, v)
	}
}

func load(m Mem, v reg.VecVirtual) reg.VecVirtual {
	VMOVUPS(m, v)
	return v
}

func field(m Mem, offset int) reg.GPVirtual {
	g := GP64()
	MOVQ(m.Offset(offset), g)
	return g
}
