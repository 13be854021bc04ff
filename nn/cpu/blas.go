package cpu

import (
	"errors"
	"fmt"

	"gonum.org/v1/gonum/blas"
	"gonum.org/v1/gonum/blas/gonum"
)

// EnvOpenBLAS is the environment variable that selects OpenBLAS: the path of a library to
// use instead of the system's, or "off" for none.
const EnvOpenBLAS = "RINGTRAIN_OPENBLAS"

// off is the value of EnvOpenBLAS that disables OpenBLAS.
const off = "off"

// ErrNoOpenBLAS is returned by OpenBLAS if there is no library or it is disabled.
var ErrNoOpenBLAS = errors.New("cpu: no OpenBLAS")

// BLAS is the part of gonum's blas.Float32 that the backend uses: row-major C =
// alpha·op(A)·op(B) + beta·C. The result may depend only on shapes, values and addresses
// modulo 64 bytes. A BLAS belongs to one goroutine at a time. If it implements
// fmt.Stringer, String is its name in reports.
type BLAS interface {
	Sgemm(tA, tB blas.Transpose, m, n, k int, alpha float32, a []float32, lda int, b []float32, ldb int, beta float32, c []float32, ldc int)
}

// findBLAS returns the best BLAS of this machine. If the user asked for an OpenBLAS that
// cannot be loaded, it returns an error along with gonum's.
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

// BLAS returns the name of the matrix product implementation, for reports. For gonum that
// is the architecture and the kind of code, such as "gonum amd64 assembly"; for OpenBLAS
// it is the version and the processor type, such as "openblas 0.3.21 SkylakeX". Equal
// names promise equal bits.
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
