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

	"github.com/ringtrain/ringtrain/nn/cpu/sgemm"
)

// libraryNames are the names under which distributions install OpenBLAS with 32-bit
// integers: Debian and most others, then the threaded builds of Fedora and openSUSE.
var libraryNames = []string{"libopenblas.so.0", "libopenblas.so", "libopenblasp.so.0", "libopenblas_pthreads.so.0"}

// OpenBLAS returns a BLAS that uses the OpenBLAS library of this machine, a new one on
// every call. The first call loads the library for the life of the process and sets it to
// one thread. The error is ErrNoOpenBLAS if there is no library or EnvOpenBLAS is "off".
// If EnvOpenBLAS asks for a library that cannot be used, the error is a different one.
func OpenBLAS() (BLAS, error) {
	lib, err := loaded()
	if err != nil {
		return nil, err
	}
	return newOpenBLAS(lib), nil
}

// loaded loads the library once. Its thread count and processor type are settings of the
// whole process, so there can be only one.
var loaded = sync.OnceValues(func() (*library, error) { return find(os.Getenv(EnvOpenBLAS)) })

// find loads the library named by requested, or else the first of libraryNames that loads.
func find(requested string) (*library, error) {
	if requested == off {
		return nil, fmt.Errorf("%w: %s is %s", ErrNoOpenBLAS, EnvOpenBLAS, off)
	}
	if requested != "" && requested != system {
		lib, err := load(requested)
		if err != nil {
			return nil, fmt.Errorf("cpu: %s is %s: %w; set it to the path of an OpenBLAS library or to %s, or unset it", EnvOpenBLAS, requested, err, system)
		}
		return lib, nil
	}
	var reasons error
	for _, name := range libraryNames {
		lib, err := load(name)
		if err == nil {
			return lib, nil
		}
		reasons = errors.Join(reasons, err)
	}
	if requested == system {
		return nil, fmt.Errorf("cpu: %s is %s, but none of %s can be loaded; install OpenBLAS (libopenblas0 on Debian), or unset it", EnvOpenBLAS, system, strings.Join(libraryNames, ", "))
	}
	return nil, fmt.Errorf("%w: %w", ErrNoOpenBLAS, reasons)
}

// A library is OpenBLAS as loaded into this process.
type library struct {
	name  string  // includes version and processor
	sgemm uintptr // Fortran interface: all arguments are pointers
}

// load loads a library and checks it. The system searches for it unless path contains a
// slash. An unusable library stays in memory.
func load(path string) (*library, error) {
	core := coreType()
	var handle uintptr
	var err error
	// OpenBLAS treats processors newer than itself as a Prescott of 2004 unless the
	// environment says otherwise when it is loaded. It also starts its threads then.
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
		return nil, errors.New("it uses 64-bit integers; ringtrain needs a build with 32-bit integers")
	}
	setThreads(1)
	lib.name = "openblas " + version(about) + " " + corename()
	if core != "" && !strings.EqualFold(core, corename()) {
		lib.name += " (not " + core + ")"
	}
	return lib, lib.check()
}

// version returns the second word of OpenBLAS's description of itself.
func version(about string) string {
	if words := strings.Fields(about); len(words) > 1 {
		return words[1]
	}
	return "unknown"
}

// coreType returns OpenBLAS's name for a processor like this one. It returns "" if the
// user has chosen a type, or if OpenBLAS should choose.
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

// withEnv runs f with environment variables set and then restores them. It
// skips empty values.
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

// check multiplies two small matrices and compares the result.
func (l *library) check() error {
	c := []float32{1, 1, 1, 1}
	a := sgemm.Matrix{Data: []float32{1, 2, 3, 4, 5, 6}, Stride: 3}
	b := sgemm.Matrix{Data: []float32{1, 0, 2, 0, 1, 0}, Stride: 3, Transposed: true}
	newOpenBLAS(l).Multiply(sgemm.Matrix{Data: c, Stride: 2}, a, b, sgemm.Shape{M: 2, N: 2, K: 3}, 2)
	if [4]float32(c) != [4]float32{9, 4, 18, 7} {
		return fmt.Errorf("its products are wrong: %v", c)
	}
	return nil
}

// openBLAS multiplies using the library. The arguments live in call, which is allocated
// once, so that a product allocates nothing.
type openBLAS struct {
	lib  *library
	call *sgemmCall
}

// sgemmCall holds the arguments of sgemm_ and the pointers to them.
type sgemmCall struct {
	transA, transB         byte
	m, n, k, lda, ldb, ldc int32
	alpha, beta            float32
	a, b, c                *float32
	args                   [15]uintptr
}

// The positions of the matrices among the arguments, and of the lengths of the two
// strings, which Fortran passes last.
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

// Multiply implements BLAS. Fortran matrices are column-major, so the library sees the
// transpose of each of ours, and computes Cᵀ = Bᵀ·Aᵀ.
func (o *openBLAS) Multiply(c, a, b sgemm.Matrix, shape sgemm.Shape, beta float32) {
	if shape.M == 0 || shape.N == 0 {
		return
	}
	if max(shape.M, shape.N, shape.K, a.Stride, b.Stride, c.Stride) > math.MaxInt32 {
		panic("cpu: a matrix has more than 2³¹-1 rows or columns")
	}
	// The library would read and write past the end of a matrix that is too short.
	a.MustHold("A", shape.M, shape.K)
	b.MustHold("B", shape.K, shape.N)
	c.MustHold("C", shape.M, shape.N)
	s := o.call
	s.transA, s.transB = order(b), order(a)
	s.m, s.n, s.k = int32(shape.N), int32(shape.M), int32(shape.K)
	// Strides must be positive, even those of empty matrices.
	s.lda, s.ldb, s.ldc = int32(max(1, b.Stride)), int32(max(1, a.Stride)), int32(c.Stride)
	s.alpha, s.beta = 1, beta
	// These pointers keep the matrices alive and off the stack, which may move. The call
	// itself is on the heap, which does not move.
	s.a, s.b, s.c = unsafe.SliceData(b.Data), unsafe.SliceData(a.Data), unsafe.SliceData(c.Data)
	s.args[argA], s.args[argB], s.args[argC] = uintptr(unsafe.Pointer(s.a)), uintptr(unsafe.Pointer(s.b)), uintptr(unsafe.Pointer(s.c))
	purego.SyscallN(o.lib.sgemm, s.args[:]...)
	s.a, s.b, s.c = nil, nil, nil
}

// order is the library's letter for a matrix that is transposed or not.
func order(m sgemm.Matrix) byte {
	if m.Transposed {
		return 'T'
	}
	return 'N'
}
