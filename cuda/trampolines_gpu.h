//go:build gpu && cgo && linux

#ifndef RINGTRAIN_TRAMPOLINES_H
#define RINGTRAIN_TRAMPOLINES_H

#include <stddef.h>

// rt_open loads a library. What it returns is NULL after a failure, and then why has the
// reason; dlerror is of the thread, so it is asked for in the same call.
void *rt_open(const char *path, char *why, size_t size);

// rt_symbol is the address of a function, or NULL.
void *rt_symbol(void *library, const char *name);

// rt_version calls a function that writes a version and returns 0. It returns the version,
// or 0 after a failure.
int rt_version(void *function);

// rt_driver_bind fills the table with the functions of a loaded driver. It returns NULL,
// or the name of a function that is called and not there; then the table is as before.
const char *rt_driver_bind(void *library);

// rt_driver_init calls the driver's own cuInit, after rt_driver_bind.
int rt_driver_init(void);

#endif
