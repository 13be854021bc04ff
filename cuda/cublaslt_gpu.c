//go:build gpu && cgo && linux

#include <string.h>

#include "cublaslt_gpu.h"
#include "trampolines_gpu.h"

// Constants of cuBLASLt, the same in versions 11, 12 and 13.
enum {
	success = 0,
	real_32f = 0,
	desc_trans_a = 3,
	desc_trans_b = 4,
	desc_epilogue = 7,
	desc_bias = 8,
	desc_aux = 11,
	desc_aux_ld = 12,
	preference_workspace = 1,
	preference_alignment = 5, // and 6, 7, 8: of A, B, C and D; 256 unless set
};

// The functions that we call, unchanged from version 11 to 13. The last may be NULL.
static struct {
	int (*create)(void **);
	int (*destroy)(void *);
	size_t (*version)(void);
	int (*desc_create)(void **, int compute, int scale);
	int (*desc_destroy)(void *);
	int (*desc_set)(void *, int attribute, const void *, size_t);
	int (*layout_create)(void **, int type, uint64_t rows, uint64_t columns, int64_t ld);
	int (*layout_destroy)(void *);
	int (*preference_create)(void **);
	int (*preference_destroy)(void *);
	int (*preference_set)(void *, int attribute, const void *, size_t);
	int (*heuristic)(void *, void *desc, void *a, void *b, void *c, void *d, void *preference, int, rt_candidate *, int *);
	int (*matmul)(void *, void *desc, const void *alpha, const void *a, void *, const void *b, void *, const void *beta,
		const void *c, void *, void *d, void *, const rt_algo *, void *workspace, size_t, void *stream);
	const char *(*status_name)(int);
} lt;

const char *rt_lt_bind(void *library) {
	static const char *const names[] = {
		"cublasLtCreate", "cublasLtDestroy", "cublasLtGetVersion",
		"cublasLtMatmulDescCreate", "cublasLtMatmulDescDestroy", "cublasLtMatmulDescSetAttribute",
		"cublasLtMatrixLayoutCreate", "cublasLtMatrixLayoutDestroy",
		"cublasLtMatmulPreferenceCreate", "cublasLtMatmulPreferenceDestroy", "cublasLtMatmulPreferenceSetAttribute",
		"cublasLtMatmulAlgoGetHeuristic", "cublasLtMatmul",
		"cublasLtGetStatusName",
	};
	enum { count = sizeof names / sizeof *names, optional = 1 };
	_Static_assert(sizeof lt == count * sizeof(void *), "a name for each function");
	void *found[count];
	for (int i = 0; i < count; i++) {
		found[i] = rt_symbol(library, names[i]);
		if (found[i] == NULL && i < count - optional)
			return names[i];
	}
	memcpy(&lt, found, sizeof lt);
	return NULL;
}

const char *rt_lt_error(int status) { return lt.status_name == NULL ? NULL : lt.status_name(status); }
size_t rt_lt_version(void) { return lt.version(); }
int rt_lt_create(void **handle) { return lt.create(handle); }
int rt_lt_destroy(void *handle) { return lt.destroy(handle); }

// describe fills the descriptors for rt_lt_prepare. It sets the pointers, too, because
// cuBLASLt's candidates depend on their alignment.
static int describe(const rt_product *p, rt_matmul *made) {
	int r = lt.desc_create(&made->desc, p->compute, real_32f);
	if (r == success)
		r = lt.desc_set(made->desc, desc_trans_a, &p->trans_a, sizeof p->trans_a);
	if (r == success)
		r = lt.desc_set(made->desc, desc_trans_b, &p->trans_b, sizeof p->trans_b);
	if (r == success)
		r = lt.desc_set(made->desc, desc_epilogue, &p->epilogue, sizeof p->epilogue);
	if (r == success && p->bias != 0)
		r = lt.desc_set(made->desc, desc_bias, &p->bias, sizeof p->bias);
	if (r == success && p->aux != 0)
		r = lt.desc_set(made->desc, desc_aux, &p->aux, sizeof p->aux);
	if (r == success && p->aux != 0)
		r = lt.desc_set(made->desc, desc_aux_ld, &p->aux_ld, sizeof p->aux_ld);
	if (r == success)
		r = lt.layout_create(&made->a, p->factors, p->trans_a ? p->k : p->m, p->trans_a ? p->m : p->k, p->lda);
	if (r == success)
		r = lt.layout_create(&made->b, p->factors, p->trans_b ? p->n : p->k, p->trans_b ? p->k : p->n, p->ldb);
	if (r == success)
		r = lt.layout_create(&made->d, p->result, p->m, p->n, p->ldd);
	return r;
}

int rt_lt_prepare(void *handle, const rt_product *p, size_t workspace, rt_matmul *made, rt_candidate *candidates, int *count) {
	memset(made, 0, sizeof *made);
	int want = *count, got = 0;
	*count = 0;
	int r = describe(p, made);
	void *preference = NULL;
	if (r == success)
		r = lt.preference_create(&preference);
	if (r == success)
		r = lt.preference_set(preference, preference_workspace, &workspace, sizeof workspace);
	for (int i = 0; i < 4 && r == success; i++)
		r = lt.preference_set(preference, preference_alignment + i, &p->alignment, sizeof p->alignment);
	if (r == success)
		r = lt.heuristic(handle, made->desc, made->a, made->b, made->d, made->d, preference, want, candidates, &got);
	if (preference != NULL)
		lt.preference_destroy(preference);
	if (r != success)
		return r;
	for (int i = 0; i < got; i++) // keep those that work, in cuBLASLt's order
		if (candidates[i].status == success)
			candidates[(*count)++] = candidates[i];
	return success;
}

void rt_lt_release(rt_matmul *made) {
	if (made->desc != NULL)
		lt.desc_destroy(made->desc);
	if (made->a != NULL)
		lt.layout_destroy(made->a);
	if (made->b != NULL)
		lt.layout_destroy(made->b);
	if (made->d != NULL)
		lt.layout_destroy(made->d);
	memset(made, 0, sizeof *made);
}

int rt_lt_run(void *handle, const rt_product *p, const rt_matmul *made, const rt_algo *algo, uintptr_t workspace, size_t size, uintptr_t stream) {
	float alpha = 1;
	return lt.matmul(handle, made->desc, &alpha, (const void *)p->a, made->a, (const void *)p->b, made->b, &p->beta,
		(const void *)p->d, made->d, (void *)p->d, made->d, algo, (void *)workspace, size, (void *)stream);
}
