//go:build gpu && cgo && linux

#ifndef RINGTRAIN_NVRTC_H
#define RINGTRAIN_NVRTC_H

#include <stddef.h>

typedef void *rt_program;

// The functions of NVRTC that we call, unchanged from version 11 to 13. The last two exist
// since 11.2 and may be NULL.
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

// rt_nvrtc_bind looks up the functions. It returns NULL, or the name of a missing one.
const char *rt_nvrtc_bind(void *library);

const char *rt_nvrtc_error(int result);
int rt_nvrtc_version(int *major, int *minor);

// rt_nvrtc_open_builtins loads NVRTC's library of built-ins of that version from NVRTC's
// directory, where the loader would not always search. NVRTC later opens it by name and gets
// the loaded one. If there is none, NVRTC reports that itself.
void rt_nvrtc_open_builtins(int major, int minor);

// rt_nvrtc_archs writes the architectures that NVRTC knows, at most size, and returns their
// number, or 0 if NVRTC cannot list them.
int rt_nvrtc_archs(int *archs, int size);

// rt_nvrtc_compile compiles to a cubin or to PTX. The caller frees *image and *log, even
// after a failure.
int rt_nvrtc_compile(const char *source, const char *name, int count, const char *const *options, int cubin,
	char **image, size_t *size, char **log);

#endif
