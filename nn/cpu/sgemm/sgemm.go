package sgemm

import (
	"strconv"
)

// Block is the number of elements of the inner dimension that one chain of operations
// covers. The bits of results depend on it, so it never changes. With 256, the columns of B
// that an AVX2 kernel rereads take 16 KB, half of a small L1 cache. Large products were about
// as fast with 320, 384 or 512, and slower with 128.
const Block = 256

// A Matrix is row-major: row i begins at Data[i*Stride]. Data may end with the last element
// of the last row. If Transposed, the operand is the transpose of what Data holds.
type Matrix struct {
	Data       []float32
	Stride     int
	Transposed bool
}

// A Shape gives the sizes of C = A·B: C has M rows and N columns, A has M rows and K columns,
// and B has K rows and N columns, after transposition.
type Shape struct{ M, N, K int }

// A Multiplier multiplies matrices and owns the memory for that. Use one per goroutine. The
// zero value uses plain Go; New chooses the fastest kernels.
type Multiplier struct {
	kernels *kernels // nil: plain Go
	blocked
	wide []float64 // see plain
}

// New returns a Multiplier with the fastest kernels for this processor.
func New() *Multiplier { return &Multiplier{kernels: fastest()} }

// String names the order of operations: "ringtrain fma256", with every instruction set. Equal
// names promise equal bits.
func (x *Multiplier) String() string { return "ringtrain fma" + strconv.Itoa(Block) }

// Instructions names the instruction set of the kernels, such as "AVX2 FMA". It is "" for
// plain Go.
func (x *Multiplier) Instructions() string {
	if x.kernels == nil {
		return ""
	}
	return x.kernels.name
}

// Multiply sets c = a·b + beta·c in the order of operations of the package. With beta 0, the
// old contents of c do not matter. With a beta other than 0 and 1, it first multiplies every
// element of c by beta, and rounds. c must not be transposed or overlap a or b. Multiply
// panics if a matrix is too short for the shape. It does not allocate once it has multiplied
// matrices of the same shape.
func (x *Multiplier) Multiply(c, a, b Matrix, s Shape, beta float32) {
	a.MustHold("A", s.M, s.K)
	b.MustHold("B", s.K, s.N)
	c.MustHold("C", s.M, s.N)
	if c.Transposed {
		panic("sgemm: C is transposed; exchange A and B instead")
	}
	if s.M == 0 || s.N == 0 {
		return
	}
	announce(c, a, b, s)
	if s.K == 0 || beta != 0 && beta != 1 {
		c.scale(s, beta)
		beta = 1
	}
	switch {
	case s.K == 0:
	case x.kernels == nil:
		x.plain(c, a, b, s, beta != 0)
	default:
		x.blocked.multiply(x.kernels, product{a: a, b: b, c: c, Shape: s}, beta != 0)
	}
}

// MustHold panics unless m is long enough for an operand with these rows and columns, after
// transposition. name names the matrix in the message.
func (m Matrix) MustHold(name string, rows, columns int) {
	if m.Transposed {
		rows, columns = columns, rows
	}
	if rows < 0 || columns < 0 || rows > 0 && columns > 0 && (m.Stride < columns || len(m.Data) < (rows-1)*m.Stride+columns) {
		panic("sgemm: matrix " + name + " is shorter than its shape")
	}
}

// scale multiplies m by beta, or clears it.
func (m Matrix) scale(s Shape, beta float32) {
	for i := range s.M {
		row := m.Data[i*m.Stride:][:s.N]
		switch beta {
		case 0:
			clear(row)
		case 1:
		default:
			for j := range row {
				row[j] *= beta
			}
		}
	}
}

// strides returns how far apart neighbouring rows and columns of the operand are.
func (m Matrix) strides() (row, column int) {
	if m.Transposed {
		return 1, m.Stride
	}
	return m.Stride, 1
}
