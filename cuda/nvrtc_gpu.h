//go:build gpu && cgo && linux

#ifndef RINGTRAIN_NVRTC_H
#define RINGTRAIN_NVRTC_H

#include <stddef.h>

typedef void *rt_program;

// The functions of NVRTC that are called, unchanged from 11 to 13. The last two came with
// 11.2 and may be NULL.
typedef struct {
	int (*version)(int *major, int *minor);
	const char *(*error)(int result);
	int (*create)(rt_program *, const char *source, const char *name, int headers, const char *const *, const char *const *);
	int (*compile)(rt_program, int count, const char *const *options);
	int (*destroy)(rt_program *);
	int (*log_size)(rt_program, size_t *);
	int (*log)(rt_program, char *);
	int (*cubin_size)(rt_program, size_t *);
	int (*cubin)(rt_program, char *);
	int (*ptx_size)(rt_program, size_t *);
	int (*ptx)(rt_program, char *);
	int (*arch_count)(int *);
	int (*archs)(int *);
} rt_nvrtc;

// rt_nvrtc_bind finds them. It returns NULL, or the name of one that is missing.
const char *rt_nvrtc_bind(void *library);

const char *rt_nvrtc_error(int result);
int rt_nvrtc_version(int *major, int *minor);

// rt_nvrtc_open_builtins loads NVRTC's library of built-ins of that version from where
// NVRTC is. NVRTC opens it by its name, which finds the one that is loaded; the loader
// alone does not look there in every version. NVRTC says what is wrong if there is none.
void rt_nvrtc_open_builtins(int major, int minor);

// rt_nvrtc_archs writes the architectures that NVRTC knows, at most size, and returns how
// many; 0 if it does not say.
int rt_nvrtc_archs(int *archs, int size);

// rt_nvrtc_compile compiles, to a cubin or to PTX. *image and *log are the caller's to
// free, whatever is returned.
int rt_nvrtc_compile(const char *source, const char *name, int count, const char *const *options, int cubin,
	char **image, size_t *size, char **log);

#endif
