//go:build gpu && cgo && linux

#include "driver_gpu.h"

enum { max_args = 32 }; // the same as maxArgs in kernel.go, which checks it

CUresult rt_launch(CUstream stream, const rt_command *commands, int count, const uint32_t *widths, uint64_t *words, int *at) {
	void *params[max_args];
	for (*at = 0; *at < count; ++*at) {
		const rt_command *c = &commands[*at];
		for (uint32_t i = 0; i < c->args; i++) {
			params[i] = words;
			words += *widths++;
		}
		CUresult r = cuLaunchKernel((CUfunction)c->function, c->grid[0], c->grid[1], c->grid[2],
			c->block[0], c->block[1], c->block[2], c->shared, stream, params, NULL);
		if (r != CUDA_SUCCESS)
			return r;
	}
	return CUDA_SUCCESS;
}

CUresult rt_load(CUmodule *module, const void *image, char *log, size_t size) {
	CUjit_option options[] = {CU_JIT_ERROR_LOG_BUFFER, CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES};
	void *values[] = {log, (void *)(uintptr_t)size};
	log[0] = 0;
	CUresult r = cuModuleLoadDataEx(module, image, 2, options, values);
	log[size - 1] = 0;
	return r;
}
