//go:build gpu && cgo && linux

#define _GNU_SOURCE
#include <dlfcn.h>
#include <link.h>
#include <stdio.h>
#include <string.h>

#include "trampolines_gpu.h"

// The driver's error codes for functions that were not found.
enum { not_initialized = 3, not_supported = 801 };

static int before_driver(void) { return not_initialized; }
static int missing_in_driver(void) { return not_supported; }

typedef struct {
	const char *name, *other;
	int called;
} symbol;

#define SYMBOL(slot, name, other, called) {#name, #other, called},
static const symbol symbols[] = {
#include "symbols_gpu.h"
};
#undef SYMBOL

enum { count = sizeof symbols / sizeof *symbols };

// The table that trampolines_gpu.S jumps through. It is written only while Go searches for a
// driver, before the first call that needs one.
#define SYMBOL(slot, name, other, called) (void *)before_driver,
__attribute__((visibility("hidden"))) void *ringtrain_driver[] = {
#include "symbols_gpu.h"
};
#undef SYMBOL

static int (*driver_init)(unsigned);

// gorgonia.org/cu calls cuInit before main, and ends the process if that fails. So this
// cuInit does nothing and succeeds. It does not load the driver either, because a run may
// not need a GPU.
__attribute__((visibility("hidden"))) int cuInit(unsigned flags) {
	(void)flags;
	return 0;
}

void *rt_open(const char *path, char *why, size_t size) {
	void *library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
	if (library == NULL)
		snprintf(why, size, "%s", dlerror());
	return library;
}

void rt_close(void *library) { dlclose(library); }

const char *rt_file(void *library) {
	struct link_map *map = NULL;
	return dlinfo(library, RTLD_DI_LINKMAP, &map) == 0 ? map->l_name : "";
}

void *rt_symbol(void *library, const char *name) { return dlsym(library, name); }

const char *rt_driver_bind(void *library) {
	void *found[count];
	for (int i = 0; i < count; i++) {
		found[i] = dlsym(library, symbols[i].name);
		if (found[i] == NULL)
			found[i] = dlsym(library, symbols[i].other);
		if (found[i] == NULL && symbols[i].called)
			return symbols[i].name;
		if (found[i] == NULL)
			found[i] = (void *)missing_in_driver;
	}
	int (*init)(unsigned) = (int (*)(unsigned))dlsym(library, "cuInit");
	if (init == NULL)
		return "cuInit";
	memcpy(ringtrain_driver, found, sizeof found);
	driver_init = init;
	return NULL;
}

void rt_driver_unbind(void) {
	for (int i = 0; i < count; i++)
		ringtrain_driver[i] = (void *)before_driver;
	driver_init = NULL;
}

int rt_driver_init(void) { return driver_init(0); }
