package sgemm

import (
	"math/rand/v2"
	"syscall"
	"testing"
	"unsafe"

	"github.com/stretchr/testify/require"
)

// guarded returns n elements that end where the process may not read, or that begin there.
func guarded(t *testing.T, n int, atEnd bool) []float32 {
	t.Helper()
	page := syscall.Getpagesize()
	size := (4*n + page - 1) / page * page
	all, err := syscall.Mmap(-1, 0, size+2*page, syscall.PROT_READ|syscall.PROT_WRITE, syscall.MAP_ANON|syscall.MAP_PRIVATE)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, syscall.Munmap(all)) })
	require.NoError(t, syscall.Mprotect(all[:page], syscall.PROT_NONE))
	require.NoError(t, syscall.Mprotect(all[page+size:], syscall.PROT_NONE))
	inside := all[page : page+size]
	if atEnd {
		inside = inside[size-4*n:]
	}
	return unsafe.Slice((*float32)(unsafe.Pointer(&inside[0])), n)
}

// No kernel reads or writes outside the matrices, not even what it ignores.
func TestNothingBeyondTheMatricesIsTouched(t *testing.T) {
	everyMultiplier(t, func(t *testing.T, x *Multiplier) {
		r := rand.New(rand.NewPCG(7, 8))
		for _, s := range []Shape{{1, 1, 1}, {1, 200, 5}, {3, 130, 7}, {5, 9, 3}, {13, 10, 300}, {14, 33, 6}, {30, 129, 31}, {2, 5, 260}, {16, 11, 17}, {37, 7, 260}, {32, 50, 19}} {
			for mode := range 8 {
				matrix := func(rows, columns int, transposed bool) Matrix {
					if transposed {
						rows, columns = columns, rows
					}
					v := guarded(t, rows*columns, mode&4 != 0)
					for i := range v {
						v[i] = r.Float32()
					}
					return Matrix{Data: v, Stride: columns, Transposed: transposed}
				}
				a, b, c := matrix(s.M, s.K, mode&1 != 0), matrix(s.K, s.N, mode&2 != 0), matrix(s.M, s.N, false)
				want := Matrix{Data: make([]float32, s.M*s.N), Stride: s.N}
				reference(want, a, b, s, 0)
				x.Multiply(c, a, b, s, 0)
				require.Equal(t, bits(want.Data), bits(c.Data), "%v", s)
				x.Multiply(c, a, b, s, 1)
			}
		}
	})
}
