package collective

import "fmt"

// FoldLocal reduces operands that all lie in this process into dst. The bits
// are those of AllReduce among len(operands) ranks if rank k has operands[k].
// All vectors have the same type, length and offset in their arena. dst may be
// one of the operands. The others are not changed.
//
// The order is ring order. Element i of the arena lies in block i/4096. The
// fold of block b begins at operand b mod len(operands), goes up, and wraps
// from the last operand to the first. Mean multiplies by 1/len(operands) last.
func FoldLocal(op Op, dst Vector, operands []Vector) error {
	if err := reducible(&dst, op); err != nil {
		return err
	}
	if len(operands) == 0 {
		return fmt.Errorf("collective: FoldLocal into %v: pass at least one operand", dst)
	}
	for k, v := range append([]Vector{dst}, operands...) {
		if _, ok := v.Host(); !ok || v.dtype == 0 {
			return fmt.Errorf("collective: FoldLocal of %v: %w", v, ErrUnsupported)
		}
		if v.dtype != dst.dtype || v.n != dst.n || v.arena != dst.arena {
			return fmt.Errorf("collective: FoldLocal of %v into %v: operand %d differs in type, length or offset in the arena", v, dst, k-1)
		}
	}
	bytes := make([][]byte, len(operands))
	for k, v := range operands {
		bytes[k] = v.bytes()
	}
	new(Chain).Range(dst.dtype, op, dst.arena, dst.bytes(), bytes)
	return nil
}
