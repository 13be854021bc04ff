//go:build linux && (amd64 || arm64) && !static

package cpu

import (
	"errors"
	"fmt"
	"math"
	"os"
	"strings"
	"sync"
	"unsafe"

	"github.com/ebitengine/purego"
	"golang.org/x/sys/cpu"
	"gonum.org/v1/gonum/blas"
)

// usualNames are the names under which distributions install OpenBLAS with
// 32-bit integers: Debian and most others, then Fedora's and openSUSE's builds
// with threads.
var usualNames = []string{"libopenblas.so.0", "libopenblas.so", "libopenblasp.so.0", "libopenblas_pthreads.so.0"}

// OpenBLAS returns matrix products by the OpenBLAS library of this machine, each
// call another BLAS. The library is loaded at the first call, for good, and set
// to one thread. The error is ErrNoOpenBLAS if there is none, or EnvOpenBLAS is
// "off", and another if EnvOpenBLAS names a library that is of no use.
func OpenBLAS() (BLAS, error) {
	lib, err := loaded()
	if err != nil {
		return nil, err
	}
	return newOpenBLAS(lib), nil
}

// loaded returns the library of this process. Its threads and its choice of a
// processor are settings of the whole process, so there is only one.
var loaded = sync.OnceValues(func() (*library, error) { return find(os.Getenv(EnvOpenBLAS)) })

// find loads the library that the user wishes, or the first of the usual names.
func find(wish string) (*library, error) {
	if wish == off {
		return nil, fmt.Errorf("%w: %s is %s", ErrNoOpenBLAS, EnvOpenBLAS, off)
	}
	if wish != "" {
		lib, err := load(wish)
		if err != nil {
			return nil, fmt.Errorf("cpu: %s is %s: %w; name the file of an OpenBLAS, or set it to %s", EnvOpenBLAS, wish, err, off)
		}
		return lib, nil
	}
	var reasons error
	for _, name := range usualNames {
		lib, err := load(name)
		if err == nil {
			return lib, nil
		}
		reasons = errors.Join(reasons, err)
	}
	return nil, fmt.Errorf("%w: %w", ErrNoOpenBLAS, reasons)
}

// A library is OpenBLAS in this process.
type library struct {
	name  string  // with version and processor
	sgemm uintptr // Fortran's interface: all arguments are pointers
}

// load loads a library, which the system looks for unless path has a slash. It
// stays in memory even if it is of no use.
func load(path string) (*library, error) {
	core := coreType()
	var handle uintptr
	var err error
	// OpenBLAS takes processors newer than itself for a Prescott of 2004, unless
	// told in the environment before it is loaded. It also starts its threads
	// then.
	withEnv(map[string]string{"OPENBLAS_CORETYPE": core, "OPENBLAS_NUM_THREADS": "1"}, func() {
		handle, err = purego.Dlopen(path, purego.RTLD_NOW|purego.RTLD_LOCAL)
	})
	if err != nil {
		return nil, err
	}
	lib := new(library)
	var config, corename func() string
	var setThreads func(int32)
	for name, set := range map[string]func(symbol uintptr){
		"sgemm_":                   func(s uintptr) { lib.sgemm = s },
		"openblas_get_config":      func(s uintptr) { purego.RegisterFunc(&config, s) },
		"openblas_get_corename":    func(s uintptr) { purego.RegisterFunc(&corename, s) },
		"openblas_set_num_threads": func(s uintptr) { purego.RegisterFunc(&setThreads, s) },
	} {
		symbol, err := purego.Dlsym(handle, name)
		if err != nil {
			return nil, fmt.Errorf("not an OpenBLAS: %w", err)
		}
		set(symbol)
	}
	about := config()
	if strings.Contains(about, "USE64BITINT") {
		return nil, errors.New("it takes 64-bit integers, not 32-bit ones")
	}
	setThreads(1)
	lib.name = "openblas " + version(about) + " " + corename()
	if core != "" && !strings.EqualFold(core, corename()) {
		lib.name += " (not " + core + ")"
	}
	return lib, lib.check()
}

// version is the second word of what OpenBLAS says about itself.
func version(about string) string {
	if words := strings.Fields(about); len(words) > 1 {
		return words[1]
	}
	return "unknown"
}

// coreType returns OpenBLAS's name for a processor like this one, or nothing if
// the user has chosen or OpenBLAS had better choose.
func coreType() string {
	x := cpu.X86
	switch {
	case os.Getenv("OPENBLAS_CORETYPE") != "":
		return ""
	case x.HasAVX512F && x.HasAVX512BW && x.HasAVX512CD && x.HasAVX512DQ && x.HasAVX512VL:
		return "SkylakeX"
	case x.HasAVX2 && x.HasFMA:
		return "Haswell"
	}
	return ""
}

// withEnv runs f with variables set and then puts back what was there. Empty
// values change nothing.
func withEnv(vars map[string]string, f func()) {
	for name, value := range vars {
		if value == "" {
			continue
		}
		before, was := os.LookupEnv(name)
		os.Setenv(name, value)
		defer func() {
			if was {
				os.Setenv(name, before)
			} else {
				os.Unsetenv(name)
			}
		}()
	}
	f()
}

// check multiplies two small matrices.
func (l *library) check() error {
	c := []float32{1, 1, 1, 1}
	newOpenBLAS(l).Sgemm(blas.NoTrans, blas.Trans, 2, 2, 3, 1, []float32{1, 2, 3, 4, 5, 6}, 3, []float32{1, 0, 2, 0, 1, 0}, 3, 2, c, 2)
	if [4]float32(c) != [4]float32{9, 4, 18, 7} {
		return fmt.Errorf("its products are wrong: %v", c)
	}
	return nil
}

// openBLAS multiplies by the library. What a call points to lies in call, which
// is made once: nothing is allocated for a product.
type openBLAS struct {
	lib  *library
	call *sgemmCall
}

// sgemmCall is the arguments of sgemm_ and the pointers to them.
type sgemmCall struct {
	transA, transB         byte
	m, n, k, lda, ldb, ldc int32
	alpha, beta            float32
	a, b, c                *float32
	args                   [15]uintptr
}

// The places of the matrices among the arguments, and the number that precedes
// the lengths of the two strings.
const (
	argA, argB, argC = 6, 8, 11
	argLengths       = 13
)

func newOpenBLAS(l *library) *openBLAS {
	c := new(sgemmCall)
	for i, p := range map[int]unsafe.Pointer{
		0: unsafe.Pointer(&c.transA), 1: unsafe.Pointer(&c.transB),
		2: unsafe.Pointer(&c.m), 3: unsafe.Pointer(&c.n), 4: unsafe.Pointer(&c.k),
		5: unsafe.Pointer(&c.alpha), 7: unsafe.Pointer(&c.lda), 9: unsafe.Pointer(&c.ldb),
		10: unsafe.Pointer(&c.beta), 12: unsafe.Pointer(&c.ldc),
	} {
		c.args[i] = uintptr(p)
	}
	c.args[argLengths], c.args[argLengths+1] = 1, 1
	return &openBLAS{lib: l, call: c}
}

// String returns the name for reports.
func (o *openBLAS) String() string { return o.lib.name }

// Sgemm implements BLAS. Fortran's matrices lie column by column, so that it
// sees the transpose of each of ours, and is asked for Cᵀ = op(B)ᵀ·op(A)ᵀ.
func (o *openBLAS) Sgemm(tA, tB blas.Transpose, m, n, k int, alpha float32, a []float32, lda int, b []float32, ldb int, beta float32, c []float32, ldc int) {
	if m == 0 || n == 0 {
		return
	}
	if max(m, n, k, lda, ldb, ldc) > math.MaxInt32 {
		panic("cpu: a matrix has more than 2³¹-1 rows or columns")
	}
	holds("A", a, tA, m, k, lda)
	holds("B", b, tB, k, n, ldb)
	holds("C", c, blas.NoTrans, m, n, ldc)
	s := o.call
	s.transA, s.transB = byte(tB), byte(tA)
	s.m, s.n, s.k = int32(n), int32(m), int32(k)
	s.lda, s.ldb, s.ldc = int32(ldb), int32(lda), int32(ldc)
	s.alpha, s.beta = alpha, beta
	// The call's own pointers keep the matrices alive, and off the stack, which
	// may move. The call itself is on the heap, which does not.
	s.a, s.b, s.c = unsafe.SliceData(b), unsafe.SliceData(a), unsafe.SliceData(c)
	s.args[argA], s.args[argB], s.args[argC] = uintptr(unsafe.Pointer(s.a)), uintptr(unsafe.Pointer(s.b)), uintptr(unsafe.Pointer(s.c))
	purego.SyscallN(o.lib.sgemm, s.args[:]...)
	s.a, s.b, s.c = nil, nil, nil
}

// holds panics unless v is long enough for a matrix with rows×columns in op(v):
// the library would read and write beyond it.
func holds(name string, v []float32, t blas.Transpose, rows, columns, stride int) {
	if t != blas.NoTrans {
		rows, columns = columns, rows
	}
	if stride < columns || rows > 0 && len(v) < (rows-1)*stride+columns {
		panic("cpu: matrix " + name + " of a product is shorter than its shape")
	}
}
