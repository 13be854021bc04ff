//go:build gpu && cgo && linux

#define _GNU_SOURCE // dladdr
#include <dlfcn.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "nvrtc_gpu.h"
#include "trampolines_gpu.h"

static rt_nvrtc nvrtc;

const char *rt_nvrtc_bind(void *library) {
	static const char *const names[] = {
		"nvrtcVersion", "nvrtcGetErrorString", "nvrtcCreateProgram", "nvrtcCompileProgram", "nvrtcDestroyProgram",
		"nvrtcGetProgramLogSize", "nvrtcGetProgramLog", "nvrtcGetCUBINSize", "nvrtcGetCUBIN", "nvrtcGetPTXSize", "nvrtcGetPTX",
		"nvrtcGetNumSupportedArchs", "nvrtcGetSupportedArchs",
	};
	enum { count = sizeof names / sizeof *names, optional = 2 };
	_Static_assert(sizeof nvrtc == count * sizeof(void *), "a name for each function");
	void *found[count];
	for (int i = 0; i < count; i++) {
		found[i] = rt_symbol(library, names[i]);
		if (found[i] == NULL && i < count - optional)
			return names[i];
	}
	memcpy(&nvrtc, found, sizeof nvrtc);
	return NULL;
}

const char *rt_nvrtc_error(int result) { return nvrtc.error(result); }

int rt_nvrtc_version(int *major, int *minor) { return nvrtc.version(major, minor); }

void rt_nvrtc_open_builtins(int major, int minor) {
	Dl_info info;
	char path[PATH_MAX];
	if (dladdr((void *)nvrtc.version, &info) == 0 || strrchr(info.dli_fname, '/') == NULL)
		return;
	int directory = strrchr(info.dli_fname, '/') - info.dli_fname;
	snprintf(path, sizeof path, "%.*s/libnvrtc-builtins.so.%d.%d", directory, info.dli_fname, major, minor);
	dlopen(path, RTLD_NOW | RTLD_LOCAL);
}

int rt_nvrtc_archs(int *archs, int size) {
	int count = 0;
	if (nvrtc.arch_count == NULL || nvrtc.archs == NULL || nvrtc.arch_count(&count) != 0 || count > size)
		return 0;
	return nvrtc.archs(archs) == 0 ? count : 0;
}

// text fetches a text of the program with one of NVRTC's pairs of functions, for its size
// and its contents. It returns a result of NVRTC. *to is NULL if there is no memory.
static int text(rt_program program, int (*size_of)(rt_program, size_t *), int (*get)(rt_program, char *), char **to, size_t *size) {
	int r = size_of(program, size);
	if (r != 0)
		return r;
	*to = calloc(*size + 1, 1);
	return *to == NULL ? 1 /* NVRTC_ERROR_OUT_OF_MEMORY */ : get(program, *to);
}

int rt_nvrtc_compile(const char *source, const char *name, int count, const char *const *options, int cubin,
	char **image, size_t *size, char **log) {
	*image = *log = NULL;
	rt_program program = NULL;
	int r = nvrtc.create(&program, source, name, 0, NULL, NULL);
	if (r != 0)
		return r;
	r = nvrtc.compile(program, count, options);
	size_t log_size;
	text(program, nvrtc.log_size, nvrtc.log, log, &log_size); // on failure the caller has only the result
	if (r == 0)
		r = cubin ? text(program, nvrtc.cubin_size, nvrtc.cubin, image, size) : text(program, nvrtc.ptx_size, nvrtc.ptx, image, size);
	nvrtc.destroy(&program);
	return r;
}
