package cpu

import (
	"gonum.org/v1/gonum/blas"

	"github.com/ringtrain/ringtrain/nn"
)

// Gemm implements nn.Dense by the BLAS.
func (b *Backend) Gemm(c, x, y nn.Buffer, m, n, k int, transX, transY bool, beta float32) {
	if k == 0 { // gonum refuses operands of no elements
		if beta == 0 {
			b.Zero(c)
		} else {
			b.Scale(c, beta)
		}
		return
	}
	tX, ldX := blas.NoTrans, k
	if transX {
		tX, ldX = blas.Trans, m
	}
	tY, ldY := blas.NoTrans, n
	if transY {
		tY, ldY = blas.Trans, k
	}
	// A BLAS wants leading dimensions of at least 1, also for empty matrices.
	b.blas.Sgemm(tX, tY, m, n, k, 1, x.Float32s(), max(1, ldX), y.Float32s(), max(1, ldY), beta, c.Float32s(), max(1, n))
}
