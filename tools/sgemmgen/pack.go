package main

import (
	. "github.com/mmcloughlin/avo/build"
	"github.com/mmcloughlin/avo/ir"
	. "github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"

	"github.com/ringtrain/ringtrain/tools/kernel"
)

// The offsets of the fields of nn/cpu/sgemm's strip.
const (
	stripTo = 8 * iota
	stripFrom
	stripStepTo
	stripStepFrom
	stripCount
	stripMask
	stripLanes
)

// copies emits a kernel that copies rows of at most one register. It writes whole registers,
// with zeros beyond the mask.
func copies(s set) {
	kernel.Begin(s.name+"Copy", "(s *[10]uint64)", s.name+"Copy copies rows of at most one register, and writes whole registers.")
	p := kernel.Pointer("s")
	to, from := Mem{Base: field(p, stripTo)}, Mem{Base: field(p, stripFrom)}
	stepTo, stepFrom, n := field(p, stripStepTo), field(p, stripStepFrom), field(p, stripCount)
	var masked reg.OpmaskVirtual
	var lanes reg.VecVirtual
	if s.masks {
		masked = K()
		KMOVW(p.Offset(stripMask), masked)
	} else {
		lanes = load(p.Offset(stripLanes), s.vector())
	}
	Label("row")
	v := s.vector()
	if s.masks {
		VMOVUPS_Z(from, masked, v)
	} else {
		VMASKMOVPS(from, lanes, v)
	}
	VMOVUPS(v, to)
	ADDQ(stepFrom, from.Base)
	ADDQ(stepTo, to.Base)
	DECQ(n)
	JNZ(LabelRef("row"))
	kernel.End()
}

// transposes emits a kernel that transposes four columns at a time. A register takes four
// elements from each row and has a lane of 16 bytes for each fourth row, so that all moves
// of elements stay in their lanes.
func transposes(s set) {
	kernel.Begin(s.name+"Transpose", "(s *[10]uint64)", s.name+"Transpose writes columns of as many rows as a register has elements. The count is a multiple of 4.")
	p := kernel.Pointer("s")
	to, from := Mem{Base: field(p, stripTo)}, field(p, stripFrom)
	stepTo, stepFrom, n := field(p, stripStepTo), field(p, stripStepFrom), field(p, stripCount)
	groups, third := everyFourth(from, stepFrom, s.bytes/16)
	Label("columns")
	for _, v := range fourByFour(s, fourOfEach(s, groups, stepFrom, third)) {
		VMOVUPS(v, to)
		ADDQ(stepTo, to.Base)
	}
	for _, g := range groups {
		ADDQ(U8(16), g)
	}
	SUBQ(U8(4), n)
	JNZ(LabelRef("columns"))
	kernel.End()
}

// everyFourth returns pointers to every fourth row of a matrix, from first on, and the
// distance of three rows.
func everyFourth(first, step reg.GPVirtual, count int) (rows []reg.GPVirtual, third reg.GPVirtual) {
	rows = []reg.GPVirtual{first}
	for range count - 1 {
		next := GP64()
		LEAQ(Mem{Base: rows[len(rows)-1], Index: step, Scale: 4}, next)
		rows = append(rows, next)
	}
	return rows, threeOf(step)
}

func threeOf(step reg.GPVirtual) reg.GPVirtual {
	third := GP64()
	LEAQ(Mem{Base: step, Index: step, Scale: 2}, third)
	return third
}

// rowAfter returns the address of the r-th row, up to the third, after the one at base. third
// is the distance of three rows.
func rowAfter(base Mem, step, third reg.GPVirtual, r int) Mem {
	switch r {
	case 1, 2:
		base.Index, base.Scale = step, uint8(r)
	case 3:
		base.Index, base.Scale = third, 1
	}
	return base
}

// fourOfEach loads four elements of each row into four registers. fourths are the addresses
// of every fourth row, one for each lane of 16 bytes: register r has rows r, r+4 and so on.
func fourOfEach(s set, fourths []reg.GPVirtual, step, third reg.GPVirtual) [4]reg.VecVirtual {
	var four [4]reg.VecVirtual
	for r := range four {
		v := s.vector()
		for lane, base := range fourths {
			at := rowAfter(Mem{Base: base}, step, third, r)
			switch {
			case lane == 0:
				firstLane(at, v)
			case s.masks:
				VINSERTF32X4(U8(lane), at, v, v)
			default:
				VINSERTF128(U8(lane), at, v, v)
			}
		}
		four[r] = v
	}
	return four
}

// firstLane loads 16 bytes and sets the rest of a register to zero, with VMOVUPS. avo's
// function of that name would claim that the rest is kept, and must have been set before.
func firstLane(at Mem, v reg.VecVirtual) {
	Instruction(&ir.Instruction{
		Opcode: "VMOVUPS", Operands: []Op{at, v.AsX()}, Inputs: []Op{at}, Outputs: []Op{v}, ISA: []string{"AVX"},
	})
}

// fourByFour transposes the four by four elements of each lane.
func fourByFour(s set, r [4]reg.VecVirtual) [4]reg.VecVirtual {
	var half, out [4]reg.VecVirtual
	for i := range half {
		half[i], out[i] = s.vector(), s.vector()
	}
	VUNPCKLPS(r[1], r[0], half[0])
	VUNPCKHPS(r[1], r[0], half[1])
	VUNPCKLPS(r[3], r[2], half[2])
	VUNPCKHPS(r[3], r[2], half[3])
	VSHUFPS(U8(0x44), half[2], half[0], out[0])
	VSHUFPS(U8(0xee), half[2], half[0], out[1])
	VSHUFPS(U8(0x44), half[3], half[1], out[2])
	VSHUFPS(U8(0xee), half[3], half[1], out[3])
	return out
}
