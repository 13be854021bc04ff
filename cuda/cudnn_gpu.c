//go:build gpu && cgo && linux

#define _GNU_SOURCE // dladdr
#include <dlfcn.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cudnn_gpu.h"
#include "trampolines_gpu.h"

// Constants of cuDNN, the same in versions 8 and 9.
enum {
	success = 0,
	nchw = 0,
	data_float = 0,
	cross_correlation = 1,
	math_default = 0, // allows TF32 for float32
	math_fma = 3,     // does not allow it
	deterministic = 1,
	most_algorithms = 16, // of one pass; an algorithm may appear once per math type
};

_Static_assert(sizeof(rt_conv_algorithm) == 48 && offsetof(rt_conv_algorithm, memory) == 16, "as cuDNN has it");

// The functions that we call, unchanged from version 8 to 9.
static struct {
	size_t (*version)(void);
	size_t (*cuda)(void);
	const char *(*error)(int);
	int (*create)(void **);
	int (*destroy)(void *);
	int (*set_stream)(void *, void *stream);
	int (*tensor_create)(void **);
	int (*tensor_destroy)(void *);
	int (*tensor_set)(void *, int format, int type, int n, int c, int h, int w);
	int (*filter_create)(void **);
	int (*filter_destroy)(void *);
	int (*filter_set)(void *, int type, int format, int k, int c, int h, int w);
	int (*conv_create)(void **);
	int (*conv_destroy)(void *);
	int (*conv_set)(void *, int pad_h, int pad_w, int stride_h, int stride_w, int dilation_h, int dilation_w, int mode, int type);
	int (*conv_set_math)(void *, int);
	// By pass. The operands are x, w, y; x, y, w; and w, y, x.
	int (*algorithms[3])(void *, void *, void *, void *conv, void *, int want, int *got, rt_conv_algorithm *);
	int (*workspace[3])(void *, void *, void *, void *conv, void *, int algorithm, size_t *);
	int (*run[3])(void *, const void *alpha, void *, const void *, void *, const void *, void *conv, int algorithm, void *workspace, size_t,
		const void *beta, void *, void *);
	int (*add)(void *, const void *alpha, void *, const void *, const void *beta, void *, void *);
} dnn;

static const char *const names[] = {
	"cudnnGetVersion", "cudnnGetCudartVersion", "cudnnGetErrorString", "cudnnCreate", "cudnnDestroy", "cudnnSetStream",
	"cudnnCreateTensorDescriptor", "cudnnDestroyTensorDescriptor", "cudnnSetTensor4dDescriptor",
	"cudnnCreateFilterDescriptor", "cudnnDestroyFilterDescriptor", "cudnnSetFilter4dDescriptor",
	"cudnnCreateConvolutionDescriptor", "cudnnDestroyConvolutionDescriptor", "cudnnSetConvolution2dDescriptor", "cudnnSetConvolutionMathType",
	"cudnnGetConvolutionForwardAlgorithm_v7", "cudnnGetConvolutionBackwardFilterAlgorithm_v7", "cudnnGetConvolutionBackwardDataAlgorithm_v7",
	"cudnnGetConvolutionForwardWorkspaceSize", "cudnnGetConvolutionBackwardFilterWorkspaceSize", "cudnnGetConvolutionBackwardDataWorkspaceSize",
	"cudnnConvolutionForward", "cudnnConvolutionBackwardFilter", "cudnnConvolutionBackwardData",
	"cudnnAddTensor",
};
enum { count = sizeof names / sizeof *names };
_Static_assert(sizeof dnn == count * sizeof(void *), "a name for each function");

// The libraries that convolutions need. Some builds of cuDNN lack the optional ones.
static const char *const parts8[] = {"libcudnn_ops_infer.so.8", "libcudnn_cnn_infer.so.8", "libcudnn_ops_train.so.8", "libcudnn_cnn_train.so.8", NULL};
static const char *const parts9[] = {"libcudnn_graph.so.9", "libcudnn_ops.so.9", "libcudnn_cnn.so.9", NULL};
static const char *const optional9[] = {"libcudnn_heuristic.so.9", "libcudnn_engines_precompiled.so.9", "libcudnn_engines_runtime_compiled.so.9", NULL};

static bool is9; // cuDNN is 9, and not 8

const char *rt_dnn_bind(void *library) {
	void *found[count];
	for (int i = 0; i < count; i++) {
		found[i] = rt_symbol(library, names[i]);
		if (found[i] == NULL)
			return names[i];
	}
	memcpy(&dnn, found, sizeof dnn);
	is9 = rt_symbol(library, "cudnnCnnInferVersionCheck") == NULL;
	return NULL;
}

// open_beside opens a library in the directory of file, and sets *there if that has one.
static void *open_beside(const char *file, const char *name, bool *there) {
	char path[PATH_MAX];
	const char *end = strrchr(file, '/');
	if (end == NULL || snprintf(path, sizeof path, "%.*s/%s", (int)(end - file), file, name) >= (int)sizeof path || access(path, F_OK) != 0)
		return NULL;
	*there = true;
	return dlopen(path, RTLD_NOW | RTLD_LOCAL);
}

// open_part opens one of cuDNN's libraries: from the directory of libcudnn.so, from that of
// the file it links to, or by name. It stops at the first that exists, so that dlerror
// says what is wrong with it.
static void *open_part(const char *name) {
	Dl_info info;
	bool there = false;
	void *part = NULL;
	char file[PATH_MAX];
	if (dladdr((void *)dnn.version, &info) != 0) {
		part = open_beside(info.dli_fname, name, &there);
		if (!there && realpath(info.dli_fname, file) != NULL)
			part = open_beside(file, name, &there);
	}
	return there ? part : dlopen(name, RTLD_NOW | RTLD_LOCAL);
}

// found_by_name reports whether cuDNN gets this part when it opens the name. If an earlier
// cuDNN was refused after it had opened its own part, cuDNN would get that one.
static bool found_by_name(const char *name, void *part) {
	void *found = dlopen(name, RTLD_NOW | RTLD_LOCAL | RTLD_NOLOAD);
	if (found != NULL)
		dlclose(found);
	return found == part;
}

static void *parts[8]; // that rt_dnn_open_parts has opened
static int part_count;

const char *rt_dnn_open_parts(void) {
	static char why[512];
	part_count = 0;
	for (const char *const *name = is9 ? parts9 : parts8; *name != NULL; name++) {
		void *part = open_part(*name);
		if (part == NULL)
			snprintf(why, sizeof why, "%s", dlerror());
		else if (parts[part_count++] = part, !found_by_name(*name, part))
			snprintf(why, sizeof why, "%s of another cuDNN is already loaded", *name);
		else
			continue;
		rt_dnn_close_parts();
		return why;
	}
	for (const char *const *name = optional9; is9 && *name != NULL; name++)
		if ((parts[part_count] = open_part(*name)) != NULL)
			part_count++;
	return NULL;
}

void rt_dnn_close_parts(void) {
	while (part_count > 0)
		dlclose(parts[--part_count]);
}

size_t rt_dnn_version(void) { return dnn.version(); }
size_t rt_dnn_cuda(void) { return dnn.cuda(); }
const char *rt_dnn_error(int status) { return dnn.error(status); }
int rt_dnn_create(void **handle) { return dnn.create(handle); }
int rt_dnn_destroy(void *handle) { return dnn.destroy(handle); }

// describe fills the descriptors for rt_dnn_prepare.
static int describe(const rt_conv *c, rt_conv_made *made) {
	int r = dnn.tensor_create(&made->x);
	if (r == success)
		r = dnn.tensor_set(made->x, nchw, data_float, c->rows, c->channels, c->height, c->width);
	if (r == success)
		r = dnn.tensor_create(&made->y);
	if (r == success)
		r = dnn.tensor_set(made->y, nchw, data_float, c->rows, c->filters, c->out_height, c->out_width);
	if (r == success)
		r = dnn.tensor_create(&made->bias);
	if (r == success)
		r = dnn.tensor_set(made->bias, nchw, data_float, 1, c->filters, 1, 1);
	if (r == success)
		r = dnn.filter_create(&made->w);
	if (r == success)
		r = dnn.filter_set(made->w, data_float, nchw, c->filters, c->channels, c->size, c->size);
	if (r == success)
		r = dnn.conv_create(&made->desc);
	if (r == success)
		r = dnn.conv_set(made->desc, c->padding, c->padding, c->stride, c->stride, 1, 1, cross_correlation, data_float);
	if (r == success)
		r = dnn.conv_set_math(made->desc, c->tf32 ? math_default : math_fma);
	return r;
}

// operands returns the descriptors in the order of a pass's functions: the two inputs, then
// the output.
static void operands(int pass, const rt_conv_made *made, void *of[3]) {
	void *order[3][3] = {{made->x, made->w, made->y}, {made->x, made->y, made->w}, {made->w, made->y, made->x}};
	memcpy(of, order[pass], sizeof order[pass]);
}

// permitted reports whether an algorithm is accurate and deterministic enough. The error of
// a transform grows with the largest element nearby, so FFT is never permitted, and
// Winograd only with TF32. Algorithm 0 of both gradients, and algorithm 3 of the weights'
// gradient, sum in an order that varies.
static bool permitted(int pass, int algorithm, int tf32) {
	static const unsigned exact[3] = {1 << 0 | 1 << 1 | 1 << 2 | 1 << 3, 1 << 1, 1 << 1};
	static const unsigned winograd[3] = {1 << 6 | 1 << 7, 1 << 4 | 1 << 5, 1 << 4 | 1 << 5};
	unsigned bits = exact[pass] | (tf32 ? winograd[pass] : 0);
	return algorithm >= 0 && algorithm < 8 && (bits >> algorithm & 1);
}

int rt_dnn_prepare(void *handle, const rt_conv *c, size_t workspace, rt_conv_made *made, int *algorithms, int *count) {
	memset(made, 0, sizeof *made);
	int most = *count, got = 0;
	*count = 0;
	int r = describe(c, made);
	if (r != success)
		return r;
	void *of[3];
	operands(c->pass, made, of);
	rt_conv_algorithm found[most_algorithms];
	r = dnn.algorithms[c->pass](handle, of[0], of[1], made->desc, of[2], most_algorithms, &got, found);
	if (r != success)
		return r;
	unsigned known = 0;
	for (int i = 0; i < got && *count < most; i++) {
		int a = found[i].algorithm;
		size_t needed = 0;
		if (found[i].status != success || found[i].determinism != deterministic || !permitted(c->pass, a, c->tf32) || (known >> a & 1))
			continue;
		if (dnn.workspace[c->pass](handle, of[0], of[1], made->desc, of[2], a, &needed) != success || needed > workspace)
			continue;
		known |= 1u << a;
		algorithms[(*count)++] = a;
	}
	return success;
}

void rt_dnn_release(rt_conv_made *made) {
	if (made->x != NULL)
		dnn.tensor_destroy(made->x);
	if (made->y != NULL)
		dnn.tensor_destroy(made->y);
	if (made->bias != NULL)
		dnn.tensor_destroy(made->bias);
	if (made->w != NULL)
		dnn.filter_destroy(made->w);
	if (made->desc != NULL)
		dnn.conv_destroy(made->desc);
	memset(made, 0, sizeof *made);
}

int rt_dnn_run(void *handle, const rt_conv *c, const rt_conv_made *made, int algorithm, const rt_conv_at *at,
	uintptr_t workspace, size_t size, uintptr_t stream, const char **call) {
	uintptr_t where[3][3] = {{at->x, at->w, at->y}, {at->x, at->y, at->w}, {at->w, at->y, at->x}};
	uintptr_t *p = where[c->pass];
	float one = 1, beta = c->pass == rt_conv_weights ? 1 : 0;
	void *of[3];
	operands(c->pass, made, of);
	*call = "cudnnSetStream";
	int r = dnn.set_stream(handle, (void *)stream);
	if (r == success) {
		*call = names[offsetof(__typeof__(dnn), run) / sizeof(void *) + c->pass];
		r = dnn.run[c->pass](handle, &one, of[0], (const void *)p[0], of[1], (const void *)p[1], made->desc, algorithm,
			(void *)workspace, size, &beta, of[2], (void *)p[2]);
	}
	if (r == success && at->bias != 0) {
		*call = "cudnnAddTensor";
		r = dnn.add(handle, &one, made->bias, (const void *)at->bias, &one, made->y, (void *)at->y);
	}
	return r;
}
