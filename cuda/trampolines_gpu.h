//go:build gpu && cgo && linux

#ifndef RINGTRAIN_TRAMPOLINES_H
#define RINGTRAIN_TRAMPOLINES_H

#include <stddef.h>

// rt_open loads a library. After a failure it returns NULL and writes the reason to why. It
// calls dlerror itself, because that is per thread.
void *rt_open(const char *path, char *why, size_t size);

// rt_close undoes rt_open.
void rt_close(void *library);

// rt_file returns the file that a library was loaded from.
const char *rt_file(void *library);

// rt_symbol returns the address of a function, or NULL.
void *rt_symbol(void *library, const char *name);

// rt_driver_bind fills the table with the functions of a loaded driver. It returns NULL, or
// the name of a missing function that we call; then the table is unchanged.
const char *rt_driver_bind(void *library);

// rt_driver_unbind empties the table, so that the driver can be closed.
void rt_driver_unbind(void);

// rt_driver_init calls the driver's own cuInit, after rt_driver_bind.
int rt_driver_init(void);

#endif
