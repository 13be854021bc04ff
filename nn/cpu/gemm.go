package cpu

import (
	"gonum.org/v1/gonum/blas"

	"github.com/ringtrain/ringtrain/nn"
)

// Gemm implements nn.Dense using the BLAS.
func (b *Backend) Gemm(c, x, y nn.Buffer, m, n, k int, transX, transY bool, beta float32) {
	if k == 0 { // gonum rejects empty operands
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
	// A BLAS requires leading dimensions of at least 1, even for empty matrices.
	b.blas.Sgemm(tX, tY, m, n, k, 1, x.Float32s(), max(1, ldX), y.Float32s(), max(1, ldY), beta, c.Float32s(), max(1, n))
}
