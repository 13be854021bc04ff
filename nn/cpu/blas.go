package cpu

import (
	"errors"
	"fmt"

	"gonum.org/v1/gonum/blas"
	"gonum.org/v1/gonum/blas/gonum"
)

// EnvOpenBLAS is the environment variable that names the file of the OpenBLAS to
// use in place of the one that the system would find, or is "off" for none.
const EnvOpenBLAS = "RINGTRAIN_OPENBLAS"

// off is the value of EnvOpenBLAS for no OpenBLAS.
const off = "off"

// ErrNoOpenBLAS is returned by OpenBLAS where there is none or none is wanted.
var ErrNoOpenBLAS = errors.New("cpu: no OpenBLAS")

// BLAS is the part of gonum's blas.Float32 that the backend uses: row-major C =
// alpha·op(A)·op(B) + beta·C. Its result may depend on shapes, values and on
// addresses modulo 64 bytes, and on nothing else. It belongs to one goroutine at
// a time. If it is a fmt.Stringer, that is what the backend calls it.
type BLAS interface {
	Sgemm(tA, tB blas.Transpose, m, n, k int, alpha float32, a []float32, lda int, b []float32, ldb int, beta float32, c []float32, ldc int)
}

// findBLAS returns the best BLAS of this machine. It is gonum's, too, beside an
// error: the user asked for an OpenBLAS that cannot be had.
func findBLAS() (BLAS, error) {
	found, err := OpenBLAS()
	if err == nil {
		return found, nil
	}
	if errors.Is(err, ErrNoOpenBLAS) {
		err = nil
	}
	return gonum.Implementation{}, err
}

// BLAS returns the name of what multiplies matrices, for reports: gonum with the
// architecture and the kind of its code, as in "gonum amd64 assembly", or OpenBLAS
// with its version and the processor it computes for, as in "openblas 0.3.21
// SkylakeX". Equal names promise equal bits.
func (b *Backend) BLAS() string {
	switch x := b.blas.(type) {
	case fmt.Stringer:
		return x.String()
	case gonum.Implementation:
		return gonumName()
	default:
		return fmt.Sprintf("%T", x)
	}
}
