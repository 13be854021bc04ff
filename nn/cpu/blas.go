package cpu

import (
	"errors"
	"fmt"
	"os"

	"github.com/ringtrain/ringtrain/nn/cpu/sgemm"
)

// EnvOpenBLAS is the environment variable that selects OpenBLAS for matrix products:
// "system" for the library of this machine, or the path of one. If it is unset or "off",
// package sgemm multiplies.
const EnvOpenBLAS = "RINGTRAIN_OPENBLAS"

// Values of EnvOpenBLAS that are not paths.
const (
	off    = "off"
	system = "system"
)

// ErrNoOpenBLAS is returned by OpenBLAS if there is no library or it is disabled.
var ErrNoOpenBLAS = errors.New("cpu: no OpenBLAS")

// A BLAS multiplies matrices. An sgemm.Multiplier is one.
type BLAS interface {
	// Multiply sets c = a·b + beta·c. With beta 0, the old contents of c do not matter.
	// The result may depend only on shapes, values and addresses modulo 64 bytes. A BLAS
	// belongs to one goroutine at a time. If it implements fmt.Stringer, String is its
	// name in reports, and equal names promise equal bits.
	Multiply(c, a, b sgemm.Matrix, s sgemm.Shape, beta float32)
}

// chooseBLAS returns the BLAS that the user wants. If that is an OpenBLAS that cannot be
// loaded, it returns an error along with the default.
func chooseBLAS() (BLAS, error) {
	requested := os.Getenv(EnvOpenBLAS)
	if requested == "" || requested == off {
		return sgemm.New(), nil
	}
	lib, err := OpenBLAS()
	if err != nil {
		return sgemm.New(), err
	}
	return lib, nil
}

// BLAS returns the name of the matrix product implementation, for reports: "ringtrain
// fma256", whatever the processor, or OpenBLAS's version and processor type, such as
// "openblas 0.3.21 SkylakeX". Equal names promise equal bits.
func (b *Backend) BLAS() string {
	if named, ok := b.blas.(fmt.Stringer); ok {
		return named.String()
	}
	return fmt.Sprintf("%T", b.blas)
}
