//go:build gpu && cgo && linux

package cuda

/*
#include "cublaslt_gpu.h"
*/
import "C"

import (
	"fmt"
	"unsafe"
)

func bindBLAS(library *Shared) error {
	if missing := C.rt_lt_bind(pointer(library.handle)); missing != nil {
		return library.lacks(C.GoString(missing))
	}
	return nil
}

// blasFailure returns cuBLASLt's status as an *Error, or nil for success.
func blasFailure(call string, status C.int) error {
	if status == 0 {
		return nil
	}
	return &Error{Call: call, Name: statusName(int(status)), Code: int(status)}
}

// statusName returns cuBLASLt's name for a status.
func statusName(status int) string {
	if text := C.rt_lt_error(C.int(status)); text != nil {
		return C.GoString(text)
	}
	return fmt.Sprintf("CUBLAS_STATUS_%d", status)
}

func blasVersion() int { return int(C.rt_lt_version()) }

func blasCreate() (uintptr, error) {
	var h unsafe.Pointer
	err := blasFailure("cublasLtCreate", C.rt_lt_create(&h))
	return uintptr(h), err
}

func blasDestroy(h uintptr) error {
	return blasFailure("cublasLtDestroy", C.rt_lt_destroy(pointer(h)))
}

// Constants of cuBLASLt, the same in versions 11, 12 and 13.
const (
	computeFloat32 = 68
	computeTF32    = 77
	typeFloat32    = 0
	typeBFloat16   = 14
)

var epilogues = [...]C.uint32_t{None: 1, Bias: 4, BiasRelu: 6, BiasReluMask: 134, ReluGrad: 136, RowSums: 512}

// mostCandidates is the number of candidates that we request.
const mostCandidates = 8

// prepared is a product in cuBLASLt's representation.
type prepared struct {
	product    C.rt_product
	made       C.rt_matmul
	candidates []C.rt_candidate
	choice     int
}

// prepare turns the row-major product into the column-major product of the transposes,
// which have the same layout in memory: Cᵀ = op(B)ᵀ·op(A)ᵀ.
func prepare(b *BLAS, p Product) (prepared, error) {
	compute, factors, result := C.int(computeFloat32), C.int(typeFloat32), C.int(typeFloat32)
	switch {
	case p.Type == BFloat16s:
		factors, result = typeBFloat16, typeBFloat16
	case p.Type == BFloat16Factors:
		factors = typeBFloat16
	case b.options.TF32:
		compute = computeTF32
	}
	flag := func(t bool) C.int {
		if t {
			return 1
		}
		return 0
	}
	ld := func(trans bool, rows, columns int) C.int64_t {
		if trans {
			return C.int64_t(rows)
		}
		return C.int64_t(columns)
	}
	made := prepared{product: C.rt_product{
		compute: compute, factors: factors, result: result,
		trans_a: flag(p.TransB), trans_b: flag(p.TransA),
		m: C.uint64_t(p.N), n: C.uint64_t(p.M), k: C.uint64_t(p.K),
		lda: ld(p.TransB, p.K, p.N), ldb: ld(p.TransA, p.M, p.K), ldd: C.int64_t(p.N),
		epilogue: epilogues[p.Epilogue],
		bias:     C.uintptr_t(p.Bias), aux: C.uintptr_t(p.Mask), aux_ld: C.int64_t(maskWidth(p.N)),
		a: C.uintptr_t(p.B), b: C.uintptr_t(p.A), d: C.uintptr_t(p.C), alignment: C.uint32_t(p.alignment()), beta: C.float(p.Beta),
	}}
	found := make([]C.rt_candidate, mostCandidates)
	count := C.int(len(found))
	status := C.rt_lt_prepare(pointer(b.handle), &made.product, C.size_t(b.size), &made.made, &found[0], &count)
	made.candidates = found[:count]
	return made, blasFailure("cublasLtMatmulAlgoGetHeuristic", status)
}

func (p *prepared) count() int { return len(p.candidates) }

func (p *prepared) run(b *BLAS, s Stream) error {
	return blasFailure("cublasLtMatmul", C.rt_lt_run(pointer(b.handle), &p.product, &p.made, &p.candidates[p.choice].algo,
		C.uintptr_t(b.workspace), C.size_t(b.size), C.uintptr_t(s.handle)))
}

func (p *prepared) release() { C.rt_lt_release(&p.made) }
