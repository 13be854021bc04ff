package collective

import (
	"unsafe"

	"github.com/ringtrain/ringtrain/collective/fold"
	"github.com/ringtrain/ringtrain/collective/schedule"
)

// widened reports whether a reduction is folded in more bits than an element
// has. Its partial results do not fit into elements, so the ring cannot carry
// them.
func widened(t DType, o Op) bool {
	switch t {
	case Float16, BFloat16:
		return true
	case Float32, Float64:
		return false
	}
	return o == Mean
}

// A Chain folds operands in ring order. The zero value is ready to use. It
// reuses memory between folds, so only one goroutine may use it at a time.
type Chain struct {
	wide []uint64 // partial results wider than an element, or that must not overwrite an operand
	room [][]byte // operands of one block, for Range

	pieces [][]byte // operands of one rank's piece, for Operation.Finish

	// Operands as slices of their element type.
	singles [][]float32
	narrow  [][]int32
	long    [][]int64
}

// Range sets dst to the reduction of all ranks' operands, in the bits of
// AllReduce. operands[r] is that of rank r. The elements begin at index at of
// their arena. Each block is folded separately, beginning with the operand of
// rank block mod size. dst may be one of the operands.
func (c *Chain) Range(t DType, op Op, at int, dst []byte, operands [][]byte) {
	width, size := t.Size(), len(operands)
	if size == 2 && op != Mean && !widened(t, op) && at%schedule.BlockLen+len(dst)/width <= schedule.BlockLen { // a shortcut for the loop below
		first := at / schedule.BlockLen % 2
		foldBytes(t, op, dst, operands[first], operands[1-first])
		return
	}
	if c.sumBlock(t, op, at, dst, operands) {
		return
	}
	for lo := 0; lo < len(dst); {
		block := at / schedule.BlockLen
		n := min((block+1)*schedule.BlockLen-at, (len(dst)-lo)/width)
		hi := lo + n*width
		chain := c.room[:0]
		for i := range size {
			chain = append(chain, operands[(block+i)%size][lo:hi])
		}
		c.room = chain
		c.Fold(t, op, dst[lo:hi], chain)
		at, lo = at+n, hi
	}
}

// reduce is Range for a call. It takes the short path of FoldPair if there is one.
func (c *Chain) reduce(call *Call, at int, dst []byte, operands [][]byte) {
	if len(operands) == 2 && FoldPair(call, at, dst, operands[0], operands[1]) {
		return
	}
	c.Range(call.DType, call.Op, at, dst, operands)
}

// sumBlock is Range for sums and means of float32 within one block, without another list
// of operands. It reports whether it did.
func (c *Chain) sumBlock(t DType, op Op, at int, dst []byte, operands [][]byte) bool {
	block, size := uint(at)/schedule.BlockLen, uint(len(operands))
	if t != Float32 || op != Sum && op != Mean || size < 3 || uint(at+len(dst)/4-1)/schedule.BlockLen != block {
		return false
	}
	by := float32(1)
	if op == Mean {
		by /= float32(size)
	}
	first := block % size
	list := c.singles[:0]
	for _, x := range operands[first:] {
		list = append(list, elements[float32](x))
	}
	for _, x := range operands[:first] {
		list = append(list, elements[float32](x))
	}
	c.singles = list
	fold.SumAll(elements[float32](dst), list, by)
	return true
}

// FoldPair folds the operands a of rank 0 and b of rank 1 like [Chain.Range], but only sums
// of float32 within one block. It reports whether it did. For a few elements, it executes
// half as many instructions.
func FoldPair(c *Call, at int, dst, a, b []byte) bool {
	block := uint(at) / schedule.BlockLen
	if c.DType != Float32 || c.Op != Sum || uint(at+len(dst)/4-1)/schedule.BlockLen != block {
		return false
	}
	if block%2 == 1 {
		a, b = b, a
	}
	fold.SumInto(elements[float32](dst), elements[float32](a), elements[float32](b))
	return true
}

// Fold sets dst to the finished reduction of the operands, one per rank, folded
// from the first to the last. dst may be one of them. They hold at most one
// block and are aligned for their type.
func (c *Chain) Fold(t DType, op Op, dst []byte, operands [][]byte) {
	switch {
	case t == Float32 && op == Sum && len(operands) > 2: // two operands take one pass anyway
		fold.SumAll(elements[float32](dst), as(&c.singles, operands), 1)
	case t == Float32 && op == Mean && len(operands) > 1:
		fold.SumAll(elements[float32](dst), as(&c.singles, operands), 1/float32(len(operands)))
	case !widened(t, op):
		c.foldPlain(t, op, dst, operands)
	case t == Int32:
		fold.MeanAll(elements[int32](dst), as(&c.narrow, operands))
	case t == Uint8:
		fold.MeanAll(dst, operands)
	case t == Int64:
		fold.MeanAll(elements[int64](dst), as(&c.long, operands))
	default:
		c.foldHalves(t, op, dst, operands)
	}
}

// as returns the operands as slices of elements, listed in room.
func as[T Element](room *[][]T, operands [][]byte) [][]T {
	list := (*room)[:0]
	for _, x := range operands {
		list = append(list, elements[T](x))
	}
	*room = list
	return list
}

// foldPlain folds in the element type itself.
func (c *Chain) foldPlain(t DType, op Op, dst []byte, operands [][]byte) {
	if len(operands) == 1 {
		copy(dst, operands[0])
	} else {
		acc := dst
		for _, x := range operands[2:] {
			if unsafe.SliceData(x) == unsafe.SliceData(dst) { // dst is still needed as an operand
				acc = c.scratch(len(dst))
			}
		}
		foldBytes(t, op, acc, operands[0], operands[1])
		for _, x := range operands[2:] {
			foldBytes(t, op, acc, acc, x)
		}
		if unsafe.SliceData(acc) != unsafe.SliceData(dst) {
			copy(dst, acc)
		}
	}
	if op == Mean {
		scaleBytes(t, dst, len(operands))
	}
}

// scratch returns n bytes of scratch memory, enough for a block of elements of
// at most 8 bytes.
func (c *Chain) scratch(n int) []byte {
	if c.wide == nil {
		c.wide = make([]uint64, schedule.BlockLen)
	}
	return bytesOf(c.wide)[:n]
}

// foldHalves folds 16-bit floats in float32 and rounds once.
func (c *Chain) foldHalves(t DType, op Op, dst []byte, operands [][]byte) {
	format := fold.Half
	if t == BFloat16 {
		format = fold.Brain
	}
	room := elements[float32](c.scratch(8 * schedule.BlockLen))
	n := len(dst) / 2
	acc, x := room[:n], room[schedule.BlockLen:][:n]
	fold.Widen(acc, elements[uint16](operands[0]), format)
	for _, operand := range operands[1:] {
		fold.Widen(x, elements[uint16](operand), format)
		fold.Into(op.step(), acc, acc, x)
	}
	if op == Mean {
		fold.Scale(acc, 1/float32(len(operands)))
	}
	fold.Round(elements[uint16](dst), acc, format)
}
