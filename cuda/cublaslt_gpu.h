//go:build gpu && cgo && linux

#ifndef RINGTRAIN_CUBLASLT_H
#define RINGTRAIN_CUBLASLT_H

#include <stddef.h>
#include <stdint.h>

// Structures that callers of cuBLASLt allocate. They are the same in versions 11, 12 and 13.
// The others are opaque and come from Create functions, because their sizes differ.
typedef struct {
	uint64_t data[8];
} rt_algo;

typedef struct {
	rt_algo algo;
	size_t workspace;
	int status;
	float waves;
	int reserved[4];
} rt_candidate;

// A product D = epilogue(op(A)·op(B) + beta·D) of column-major matrices, with cuBLASLt's
// constants.
typedef struct {
	int compute, factors, result; // types of a and b, and of d
	int trans_a, trans_b;
	uint64_t m, n, k;
	int64_t lda, ldb, ldd;
	uint32_t epilogue;
	uintptr_t bias, aux;
	int64_t aux_ld;
	uintptr_t a, b, d;
	uint32_t alignment; // of a, b and d, in bytes
	float beta;
} rt_product;

// cuBLASLt's descriptors of a product.
typedef struct {
	void *desc, *a, *b, *d;
} rt_matmul;

// rt_lt_bind looks up the functions. It returns NULL, or the name of a missing one.
const char *rt_lt_bind(void *library);

const char *rt_lt_error(int status); // NULL if this version has no names for statuses
size_t rt_lt_version(void);
int rt_lt_create(void **handle);
int rt_lt_destroy(void *handle);

// rt_lt_prepare describes the product and asks for at most *count candidates. It sets *count
// to their number, which may be 0 without a failure. Call rt_lt_release afterwards, even
// after a failure.
int rt_lt_prepare(void *handle, const rt_product *p, size_t workspace, rt_matmul *made, rt_candidate *candidates, int *count);
void rt_lt_release(rt_matmul *made);

int rt_lt_run(void *handle, const rt_product *p, const rt_matmul *made, const rt_algo *algo, uintptr_t workspace, size_t size, uintptr_t stream);

#endif
