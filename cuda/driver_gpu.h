//go:build gpu && cgo && linux

#ifndef RINGTRAIN_DRIVER_H
#define RINGTRAIN_DRIVER_H

#include <cuda.h>
#include <stdint.h>

// A launch, laid out as command in kernel.go.
typedef struct {
	uintptr_t function;
	uint32_t grid[3], block[3];
	uint32_t shared;
	uint32_t args;
} rt_command;

// rt_launch launches count kernels. words contains all arguments, and widths the number of
// words of each. After a failure *at is the index of the kernel that could not be launched.
CUresult rt_launch(CUstream stream, const rt_command *commands, int count, const uint32_t *widths, uint64_t *words, int *at);

// rt_load calls cuModuleLoadDataEx with an error log.
CUresult rt_load(CUmodule *module, const void *image, char *log, size_t size);

#endif
