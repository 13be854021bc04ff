//go:build linux && (amd64 || arm64) && !static

package cpu

import (
	"fmt"
	"hash/fnv"
	"math/rand/v2"
	"os"
	"os/exec"
	"strings"
	"sync"
	"testing"
	"unsafe"

	"github.com/stretchr/testify/require"

	"github.com/ringtrain/ringtrain/nn"
	"github.com/ringtrain/ringtrain/nn/cpu/sgemm"
	"github.com/ringtrain/ringtrain/nn/nntest"
)

// needOpenBLAS returns the library's BLAS, or skips the test.
func needOpenBLAS(t *testing.T) BLAS {
	t.Helper()
	lib, err := OpenBLAS()
	if err != nil {
		t.Skipf("no OpenBLAS to test: %v", err)
	}
	return lib
}

func TestBackendWithOpenBLAS(t *testing.T) {
	needOpenBLAS(t)
	nntest.TestBackend(t, func(t *testing.T) nn.Backend { return New(Options{BLAS: needOpenBLAS(t)}) })
}

// shapes lists m, n, k, from shapes that libraries treat as small to shapes that they split.
var shapes = [][3]int{{1, 1, 1}, {9, 21, 37}, {64, 64, 64}, {128, 10, 128}, {128, 128, 784}, {130, 129, 131}, {70, 300, 600}}

// products hashes the products of all shapes. Operands start shift elements after a multiple of 64
// bytes.
func products(b *Backend, shift int) uint64 {
	sum := fnv.New64a()
	for _, s := range shapes {
		m, n, k := s[0], s[1], s[2]
		for _, trans := range [][2]bool{{false, false}, {false, true}, {true, false}, {true, true}} {
			r := rand.New(rand.NewPCG(1, 2))
			matrix := func(n int) nn.Buffer {
				v := b.Alloc(n+shift).Slice(shift, n+shift)
				for i := range v.Float32s() {
					v.Float32s()[i] = float32(r.NormFloat64())
				}
				return v
			}
			x, y, z := matrix(m*k), matrix(k*n), matrix(m*n)
			b.Gemm(z, x, y, m, n, k, trans[0], trans[1], 1)
			sum.Write(unsafe.Slice((*byte)(unsafe.Pointer(unsafe.SliceData(z.Float32s()))), 4*m*n))
		}
	}
	return sum.Sum64()
}

func TestOpenBLASBitsDoNotDependOnAddresses(t *testing.T) {
	b := New(Options{BLAS: needOpenBLAS(t)})
	want := products(b, 0)
	for shift := range 16 {
		require.Equal(t, want, products(b, shift), "%d elements past a multiple of 64 bytes", shift)
	}
}

// Backends of several goroutines multiply concurrently.
func TestOpenBLASConcurrently(t *testing.T) {
	want := products(New(Options{BLAS: needOpenBLAS(t)}), 0)
	var all sync.WaitGroup
	var got [4]uint64
	for i := range got {
		b := New(Options{BLAS: needOpenBLAS(t)})
		all.Go(func() { got[i] = products(b, i) })
	}
	all.Wait()
	for _, g := range got {
		require.Equal(t, want, g)
	}
}

func TestOpenBLASAllocatesNothing(t *testing.T) {
	b := New(Options{BLAS: needOpenBLAS(t)})
	x := b.Alloc(100)
	require.Zero(t, testing.AllocsPerRun(10, func() { b.Gemm(b.Temp(100), x, x, 10, 10, 10, false, true, 0); b.Recycle() }))
}

// The library would write past the end of a matrix that is too short.
func TestOpenBLASRefusesShortMatrices(t *testing.T) {
	lib := needOpenBLAS(t)
	matrix := func(n, stride int, transposed bool) sgemm.Matrix {
		return sgemm.Matrix{Data: make([]float32, n), Stride: stride, Transposed: transposed}
	}
	multiply := func(a, b, c int, stride int) func() {
		return func() {
			lib.Multiply(matrix(c, 3, false), matrix(a, stride, false), matrix(b, 4, true), sgemm.Shape{M: 2, N: 3, K: 4}, 0)
		}
	}
	require.NotPanics(t, multiply(8, 12, 6, 4))
	require.Panics(t, multiply(7, 12, 6, 4))
	require.Panics(t, multiply(8, 11, 6, 4))
	require.Panics(t, multiply(8, 12, 5, 4))
	require.Panics(t, multiply(8, 12, 6, 3), "a leading dimension below the width")
}

func TestLoadingRestoresTheEnvironment(t *testing.T) {
	t.Setenv("OPENBLAS_NUM_THREADS", "3")
	before := os.Environ()
	_, err := load("libnosuchblas.so")
	require.Error(t, err)
	require.Equal(t, before, os.Environ())
}

// childMark makes TestChild, in a process of its own, print which BLAS it uses.
const childMark = "RINGTRAIN_TEST_OPENBLAS_CHILD"

func TestChild(t *testing.T) {
	if os.Getenv(childMark) == "" {
		t.Skip("runs as a child of TestEnvironment")
	}
	b := New(Options{})
	err := b.Do(t.Context(), func() error { return nil })
	fmt.Printf("child: %s|%x|%v\n", b.BLAS(), products(b, 0), err)
}

// child runs TestChild in a process with the given environment. It returns the BLAS it chose, the
// hash of its products and its error.
func child(t *testing.T, env ...string) (name, hash, fault string) {
	t.Helper()
	c := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^TestChild$", "-test.v")
	c.Env = append(os.Environ(), append(env, childMark+"=1")...)
	out, err := c.CombinedOutput()
	require.NoError(t, err, "%s", out)
	_, line, found := strings.Cut(string(out), "child: ")
	require.True(t, found, "%s", out)
	line, _, _ = strings.Cut(line, "\n")
	parts := strings.SplitN(line, "|", 3)
	return parts[0], parts[1], parts[2]
}

func TestEnvironment(t *testing.T) {
	const none = "<nil>"
	const ours = "ringtrain fma256"
	for _, value := range []string{"", "off"} {
		name, _, fault := child(t, EnvOpenBLAS+"="+value)
		require.Equal(t, ours, name)
		require.Equal(t, none, fault)
	}
	for _, path := range []string{"/no/such/file.so", "libm.so.6"} {
		name, _, fault := child(t, EnvOpenBLAS+"="+path)
		require.Equal(t, ours, name)
		require.Contains(t, fault, EnvOpenBLAS+" is "+path)
	}
}

// Without a library, "system" is a mistake.
func TestEnvironmentWithoutOpenBLAS(t *testing.T) {
	if _, err := OpenBLAS(); err == nil {
		t.Skip("this machine has OpenBLAS")
	}
	_, _, fault := child(t, EnvOpenBLAS+"=system")
	require.Contains(t, fault, "RINGTRAIN_OPENBLAS is system")
	require.Contains(t, fault, "unset it")
}

func TestEnvironmentWithOpenBLAS(t *testing.T) {
	needOpenBLAS(t)
	t.Setenv("OPENBLAS_CORETYPE", "")
	name, hash, fault := child(t, EnvOpenBLAS+"=system")
	require.Regexp(t, `^openblas \d\S* \w+`, name)
	require.Equal(t, "<nil>", fault)
	// The bits are the same in every process.
	again, hashAgain, _ := child(t, EnvOpenBLAS+"=system", "GOMAXPROCS=1")
	require.Equal(t, name, again)
	require.Equal(t, hash, hashAgain)
	if core := coreType(); core != "" {
		require.NotContains(t, name, "(not", "OpenBLAS uses the requested processor type")
		require.Contains(t, name, core)
	}
	// The user's choice is kept.
	if coreType() == "SkylakeX" {
		name, _, _ = child(t, EnvOpenBLAS+"=system", "OPENBLAS_CORETYPE=Haswell")
		require.Regexp(t, `^openblas \S+ Haswell$`, name)
	}
}
