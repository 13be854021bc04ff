package collective

import (
	"math/bits"

	"github.com/ringtrain/ringtrain/collective/fold"
	"github.com/ringtrain/ringtrain/collective/schedule"
)

// widened reports whether a reduction is folded in more bits than an element
// has, so that partial results cannot travel in elements: not by ring.
func widened(t DType, o Op) bool {
	switch t {
	case Float16, BFloat16:
		return true
	case Float32, Float64:
		return false
	}
	return o == Mean
}

// foldChain sets dst to the reduction of the operands in e.chain, taken from
// the first to the last, finished. dst may be one of them. All are of one block
// at most.
func (e *hostEngine) foldChain(t DType, op Op, dst []byte) {
	switch {
	case !widened(t, op):
		// dst may be an operand that comes later, so the fold is made beside it.
		acc := e.beside(len(dst))
		copy(acc, e.chain[0])
		for _, x := range e.chain[1:] {
			foldBytes(t, op, acc, acc, x)
		}
		copy(dst, acc)
		if op == Mean {
			e.scale(t, dst)
		}
	case t == Int32:
		meanNarrow[int32](dst, e.chain)
	case t == Uint8:
		meanNarrow[uint8](dst, e.chain)
	case t == Int64:
		meanWide(dst, e.chain)
	default:
		e.foldHalves(t, op, dst)
	}
}

// beside is memory for the fold of one block of elements of at most 8 bytes.
func (e *hostEngine) beside(n int) []byte {
	if e.wide == nil {
		e.wide = make([]uint64, schedule.BlockLen)
	}
	return bytesOf(e.wide)[:n]
}

// foldHalves folds 16-bit floats in float32 and rounds once.
func (e *hostEngine) foldHalves(t DType, op Op, dst []byte) {
	format := fold.Half
	if t == BFloat16 {
		format = fold.Brain
	}
	room := elements[float32](e.beside(8 * schedule.BlockLen))
	n := len(dst) / 2
	acc, x := room[:n], room[schedule.BlockLen:][:n]
	fold.Widen(acc, elements[uint16](e.chain[0]), format)
	for _, operand := range e.chain[1:] {
		fold.Widen(x, elements[uint16](operand), format)
		fold.Into(op.step(), acc, acc, x)
	}
	if op == Mean {
		fold.Scale(acc, 1/float32(e.size))
	}
	fold.Round(elements[uint16](dst), acc, format)
}

// meanNarrow is the mean of integers that 64 bits hold the sum of, truncated.
func meanNarrow[T int32 | uint8](dst []byte, chain [][]byte) {
	out := elements[T](dst)
	for i := range out {
		sum := int64(0)
		for _, x := range chain {
			sum += int64(elements[T](x)[i])
		}
		out[i] = T(sum / int64(len(chain)))
	}
}

// meanWide is the mean of 64-bit integers, summed exactly in 128 bits and
// truncated.
func meanWide(dst []byte, chain [][]byte) {
	out := elements[int64](dst)
	for i := range out {
		var hi, lo, carry uint64
		for _, x := range chain {
			v := elements[int64](x)[i]
			lo, carry = bits.Add64(lo, uint64(v), 0)
			hi, _ = bits.Add64(hi, uint64(v>>63), carry)
		}
		negative := int64(hi) < 0
		if negative {
			lo, carry = bits.Sub64(0, lo, 0)
			hi, _ = bits.Sub64(0, hi, carry)
		}
		q, _ := bits.Div64(hi, lo, uint64(len(chain))) // the mean fits, so hi < len(chain)
		if negative {
			q = -q
		}
		out[i] = int64(q)
	}
}
