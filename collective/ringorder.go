package collective

import "fmt"

// FoldLocal leaves in dst the reduction of the operands, which all lie in this
// process: the same bits that AllReduce gives among len(operands) ranks when
// rank k has operands[k]. All vectors have one type, length and place in their
// arena. dst may be one of the operands; the others stay as they are.
//
// That order is the ring order: element i of the arena lies in block i/4096,
// and block b is folded beginning at operand b mod len(operands), going up, and
// round from the last to the first. Mean multiplies by 1/len(operands) last.
func FoldLocal(op Op, dst Vector, operands []Vector) error {
	if err := reducible(&dst, op); err != nil {
		return err
	}
	if len(operands) == 0 {
		return fmt.Errorf("collective: FoldLocal into %v: there are no operands", dst)
	}
	for k, v := range append([]Vector{dst}, operands...) {
		if _, ok := v.Host(); !ok || v.dtype == 0 {
			return fmt.Errorf("collective: FoldLocal of %v: %w", v, ErrUnsupported)
		}
		if v.dtype != dst.dtype || v.n != dst.n || v.arena != dst.arena {
			return fmt.Errorf("collective: FoldLocal of %v into %v: types, lengths or places of operand %d do not fit", v, dst, k-1)
		}
	}
	bytes := make([][]byte, len(operands))
	for k, v := range operands {
		bytes[k] = v.bytes()
	}
	new(Chain).Range(dst.dtype, op, dst.arena, dst.bytes(), bytes)
	return nil
}
