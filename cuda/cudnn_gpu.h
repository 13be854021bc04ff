//go:build gpu && cgo && linux

#ifndef RINGTRAIN_CUDNN_H
#define RINGTRAIN_CUDNN_H

#include <stddef.h>
#include <stdint.h>

// The result of cudnnGetConvolution*Algorithm_v7. cuDNN's three structures have the same
// layout. We compared it, and all prototypes and constants here and in cudnn_gpu.c, with the
// headers of cuDNN 8.5.0, 8.9.7, 9.1.0 and 9.28.1. Only the values of statuses differ
// between 8 and 9.
typedef struct {
	int algorithm, status;
	float time;
	size_t memory;
	int determinism, math;
	int reserved[3];
} rt_conv_algorithm;

// The passes, in the order of cuda.ConvPass.
enum { rt_conv_forward = 0, rt_conv_weights = 1, rt_conv_input = 2 };

// A convolution of float32 images in NCHW with filters in KCRS.
typedef struct {
	int pass, tf32;
	int rows, channels, height, width;
	int filters, size, stride, padding;
	int out_height, out_width;
} rt_conv;

// cuDNN's descriptors of a convolution. bias is (1, filters, 1, 1).
typedef struct {
	void *x, *y, *bias, *w, *desc;
} rt_conv_made;

// The addresses of a convolution's operands. bias may be 0.
typedef struct {
	uintptr_t x, w, y, bias;
} rt_conv_at;

// rt_dnn_bind looks up the functions, and calls none of them. It returns NULL, or the name of
// a missing one.
const char *rt_dnn_bind(void *library);

// rt_dnn_open_parts opens the libraries that libcudnn.so opens by name when it is first
// called. If cuDNN cannot open one, it aborts the process, even in cudnnGetVersion. Call it
// before any function of cuDNN. It returns NULL, or why a library cannot be opened; the
// text is valid until the next call.
const char *rt_dnn_open_parts(void);

// rt_dnn_close_parts undoes rt_dnn_open_parts for a cuDNN that will not be used.
void rt_dnn_close_parts(void);

size_t rt_dnn_version(void);
size_t rt_dnn_cuda(void); // the CUDA version that it is built for, such as 12040
const char *rt_dnn_error(int status);
int rt_dnn_create(void **handle);
int rt_dnn_destroy(void *handle);

// rt_dnn_prepare describes the convolution and asks for algorithms, the fastest by cuDNN's
// own estimate first. *count is the size of the array, and becomes the number of algorithms.
// They are deterministic, fit into the workspace, and round only sums unless tf32 is set.
// Call rt_dnn_release afterwards, even after a failure.
int rt_dnn_prepare(void *handle, const rt_conv *c, size_t workspace, rt_conv_made *made, int *algorithms, int *count);
void rt_dnn_release(rt_conv_made *made);

// rt_dnn_run queues the convolution. After a failure *call is the function that failed.
int rt_dnn_run(void *handle, const rt_conv *c, const rt_conv_made *made, int algorithm, const rt_conv_at *at,
	uintptr_t workspace, size_t size, uintptr_t stream, const char **call);

#endif
