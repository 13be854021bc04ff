package cpu

import (
	"math"
	"runtime"
	"testing"

	"github.com/stretchr/testify/require"
	"gonum.org/v1/gonum/blas"
	"gonum.org/v1/gonum/blas/gonum"
)

// Products whose bits differ have different names.
func TestGonumNames(t *testing.T) {
	seen := map[string]bool{}
	for _, arch := range []string{"amd64", "arm64"} {
		for _, assembly := range []bool{false, true} {
			for _, fused := range []bool{false, true} {
				seen[nameGonum(arch, assembly, fused)] = true
			}
		}
	}
	require.Len(t, seen, 8)
	require.Contains(t, seen, "gonum amd64 assembly")
	require.Contains(t, seen, "gonum arm64 Go FMA")
}

// gonumAssembly matches how this build sums: the Go loop adds the elements one by one, and the
// assembly adds several at a time.
func TestGonumAssemblyMatchesThisBuild(t *testing.T) {
	n := 64
	x, y := make([]float32, n), make([]float32, n)
	for i := range x {
		x[i], y[i] = float32(math.Sin(float64(i))), float32(math.Cos(float64(3*i)))
	}
	var inOrder float32
	for i := range x {
		inOrder += x[i] * y[i]
	}
	var c [1]float32
	gonum.Implementation{}.Sgemm(blas.NoTrans, blas.Trans, 1, 1, n, 1, x, n, y, n, 0, c[:], 1)
	require.Equal(t, !gonumAssembly, c[0] == inOrder)
	switch runtime.GOARCH {
	case "arm64", "ppc64le", "s390x", "riscv64":
		require.True(t, fuses())
	case "386":
		require.False(t, fuses())
	}
}
