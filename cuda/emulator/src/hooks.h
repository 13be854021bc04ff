// The interface between compiled kernels (shim.h) and the code that runs them (machine.cpp).
#pragma once
#include <stddef.h>
#include <stdint.h>

struct rt_dim {
  unsigned x, y, z;
};
enum rt_kind { RT_READ = 0, RT_WRITE = 1, RT_ATOMIC = 2 };
struct rt_hooks {
  void (*access)(const void* at, size_t size, int kind);
  void (*misaligned)(const void* at);
  void (*barrier)();
  // warp publishes value to the lanes of mask, waits for them, and returns the
  // values of all 32 lanes, which stay readable until the caller's next call.
  const uint64_t* (*warp)(unsigned mask, uint64_t value);
};
struct rt_kernel {
  const char* name;
  void (*call)(void** args);
  int count;
  const unsigned* sizes;
  unsigned threads;  // maximum per block
};
struct rt_module {
  const rt_kernel* kernels;
  int count;
  rt_dim *thread, *block, *threads, *blocks;
  int* lane;
  char *shared_begin, *shared_end, *image_begin, *image_end;
};
