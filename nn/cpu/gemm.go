package cpu

import (
	"github.com/ringtrain/ringtrain/nn"
	"github.com/ringtrain/ringtrain/nn/cpu/sgemm"
)

// Gemm implements nn.Dense using the BLAS.
func (b *Backend) Gemm(c, x, y nn.Buffer, m, n, k int, transX, transY bool, beta float32) {
	operand := func(v nn.Buffer, transposed bool, rows, columns int) sgemm.Matrix {
		if transposed {
			columns = rows
		}
		return sgemm.Matrix{Data: v.Float32s(), Stride: columns, Transposed: transposed}
	}
	b.blas.Multiply(operand(c, false, m, n), operand(x, transX, m, k), operand(y, transY, k, n), sgemm.Shape{M: m, N: n, K: k}, beta)
}
