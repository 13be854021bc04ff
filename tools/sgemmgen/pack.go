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
	left := everyFourth(from, stepFrom, s.bytes/16)
	Label("columns")
	for _, v := range fourByFour(s, fourOfEach(s, left, 0)) {
		VMOVUPS(v, to)
		ADDQ(stepTo, to.Base)
	}
	for _, p := range left.pointers {
		ADDQ(U8(16), p)
	}
	SUBQ(U8(4), n)
	JNZ(LabelRef("columns"))
	kernel.End()
}

// rowSet has the addresses of the rows of a matrix: pointers to every fourth or eighth row, and
// multiples of the distance between rows.
type rowSet struct {
	pointers                    []reg.GPVirtual
	each                        int // rows for each pointer: 4 or 8
	step, third, fifth, seventh reg.GPVirtual
}

// everyFourth returns the rows from first on, with count pointers.
func everyFourth(first, step reg.GPVirtual, count int) *rowSet {
	r := &rowSet{pointers: []reg.GPVirtual{first}, each: 4, step: step}
	r.more(count)
	r.third = timesOf(step, 2)
	return r
}

// everyEighth needs half as many pointers as everyFourth for many rows, but two more multiples.
func everyEighth(first, step reg.GPVirtual, count int) *rowSet {
	r := &rowSet{pointers: []reg.GPVirtual{first}, each: 8, step: step}
	r.more(count)
	r.third, r.fifth = timesOf(step, 2), timesOf(step, 4)
	r.seventh = GP64()
	LEAQ(Mem{Base: r.third, Index: step, Scale: 4}, r.seventh)
	return r
}

// more adds pointers until there are count.
func (r *rowSet) more(count int) {
	for len(r.pointers) < count {
		next := GP64()
		LEAQ(Mem{Base: r.pointers[len(r.pointers)-1], Index: r.step, Scale: uint8(r.each)}, next)
		r.pointers = append(r.pointers, next)
	}
}

// timesOf returns the distance of scale rows and one more.
func timesOf(step reg.GPVirtual, scale uint8) reg.GPVirtual {
	multiple := GP64()
	LEAQ(Mem{Base: step, Index: step, Scale: scale}, multiple)
	return multiple
}

// at returns the address of a row.
func (r *rowSet) at(row int) Mem {
	m := Mem{Base: r.pointers[row/r.each]}
	switch n := row % r.each; n {
	case 1, 2, 4:
		m.Index, m.Scale = r.step, uint8(n)
	case 3, 6:
		m.Index, m.Scale = r.third, uint8(n/3)
	case 5:
		m.Index, m.Scale = r.fifth, 1
	case 7:
		m.Index, m.Scale = r.seventh, 1
	}
	return m
}

// fourOfEach loads four elements of each row from first on into four registers, which have a
// lane of 16 bytes for every fourth row: register r has rows r, r+4 and so on.
func fourOfEach(s set, from *rowSet, first int) [4]reg.VecVirtual {
	var four [4]reg.VecVirtual
	for r := range four {
		v := s.vector()
		for lane := range s.bytes / 16 {
			at := from.at(first + 4*lane + r)
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
