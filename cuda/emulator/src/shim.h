// Replaces CUDA's built-ins for kernels that are compiled for the CPU. The emulator's NVRTC puts
// this file before the source, and a table of its kernels after it. The emulator's driver runs
// them (machine.cpp).
//
// Threads of a block are fibers of one operating system thread, so built-in variables are plain
// variables that change with the running fiber. -fsanitize=kernel-address turns every load and
// store into a call of __asan_*_noabort below, which checks bounds and races.
#pragma once
#include <math.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "hooks.h"

#define RT_CPU 1
// RT_UNCHECKED functions access memory that is not the kernel's, or report their accesses
// themselves. They must not be inlined, because then they would be checked.
#define RT_UNCHECKED __attribute__((no_sanitize("kernel-address"), noinline)) static
#define RT_INLINE static inline __attribute__((always_inline))

extern "C" {
__attribute__((visibility("hidden"))) rt_hooks rt_machine;
__attribute__((visibility("hidden"))) int rt_lane;
}

static rt_dim threadIdx, blockIdx, blockDim, gridDim;
static const int warpSize = 32;

#define __global__
#define __device__ static
#define __host__
#define __forceinline__ inline
#define __restrict__ __restrict
#define __launch_bounds__(...)
#define __constant__ static
#define __shared__ __attribute__((section("rt_shared"))) static

struct alignas(8) float2 {
  float x, y;
};
struct alignas(16) float4 {
  float x, y, z, w;
};
struct alignas(16) uint4 {
  unsigned x, y, z, w;
};
struct alignas(4) uchar4 {
  unsigned char x, y, z, w;
};
struct alignas(8) ushort4 {
  unsigned short x, y, z, w;
};
struct alignas(8) int2 {
  int x, y;
};
RT_INLINE float4 make_float4(float x, float y, float z, float w) { return {x, y, z, w}; }
RT_INLINE uint4 make_uint4(unsigned x, unsigned y, unsigned z, unsigned w) { return {x, y, z, w}; }

// Barriers, votes and shuffles.
RT_INLINE void __syncthreads() { rt_machine.barrier(); }
RT_INLINE void __threadfence() {}
RT_INLINE void __threadfence_block() {}
RT_UNCHECKED void __syncwarp(unsigned mask = 0xffffffffu) { rt_machine.warp(mask, 0); }
RT_UNCHECKED int __syncthreads_or(int p) {
  __shared__ int any;
  rt_machine.barrier();
  if (threadIdx.x == 0 && threadIdx.y == 0 && threadIdx.z == 0) any = 0;
  rt_machine.barrier();
  if (p) any = 1;
  rt_machine.barrier();
  return any;
}
template <class T> RT_UNCHECKED T rt_take(unsigned mask, T value, int source) {
  static_assert(sizeof(T) == 4 || sizeof(T) == 8, "shuffles take 4 or 8 bytes");
  uint64_t bits = 0;
  memcpy(&bits, &value, sizeof value);
  const uint64_t* lanes = rt_machine.warp(mask, bits);
  T taken;
  memcpy(&taken, &lanes[source], sizeof taken);
  return taken;
}
template <class T> RT_UNCHECKED T __shfl_sync(unsigned mask, T v, int source) { return rt_take(mask, v, source & 31); }
template <class T> RT_UNCHECKED T __shfl_xor_sync(unsigned mask, T v, int bits) { return rt_take(mask, v, (rt_lane ^ bits) & 31); }
template <class T> RT_UNCHECKED T __shfl_down_sync(unsigned mask, T v, int d) { return rt_take(mask, v, rt_lane + d < 32 ? rt_lane + d : rt_lane); }
template <class T> RT_UNCHECKED T __shfl_up_sync(unsigned mask, T v, int d) { return rt_take(mask, v, rt_lane - d >= 0 ? rt_lane - d : rt_lane); }
RT_UNCHECKED unsigned __ballot_sync(unsigned mask, int p) {
  const uint64_t* lanes = rt_machine.warp(mask, p != 0);
  unsigned votes = 0;
  for (int i = 0; i < 32; i++)
    if (mask >> i & 1 && lanes[i]) votes |= 1u << i;
  return votes;
}
RT_UNCHECKED int __any_sync(unsigned mask, int p) { return __ballot_sync(mask, p) != 0; }
RT_UNCHECKED int __all_sync(unsigned mask, int p) { return __ballot_sync(mask, !p) == 0; }

// Atomics, and loads and stores that other blocks see. Fibers do not interrupt each other, so
// plain operations are atomic.
template <class T> RT_UNCHECKED T atomicAdd(T* at, T v) {
  rt_machine.access(at, sizeof(T), RT_ATOMIC);
  T old = *at;
  *at = old + v;
  return old;
}
template <class T> RT_UNCHECKED T atomicExch(T* at, T v) {
  rt_machine.access(at, sizeof(T), RT_ATOMIC);
  T old = *at;
  *at = v;
  return old;
}
template <class T> RT_UNCHECKED T atomicMax(T* at, T v) {
  rt_machine.access(at, sizeof(T), RT_ATOMIC);
  T old = *at;
  if (v > old) *at = v;
  return old;
}
template <class T> RT_UNCHECKED T __ldcg(const T* at) {
  rt_machine.access(at, sizeof(T), RT_ATOMIC);
  return *at;
}
template <class T> RT_UNCHECKED void __stcg(T* at, T v) {
  rt_machine.access(at, sizeof(T), RT_ATOMIC);
  *at = v;
}
template <class T> inline T __ldg(const T* at) { return *at; }

// Arithmetic with one rounding each. The build forbids fused operations.
RT_INLINE float __fmul_rn(float a, float b) { return a * b; }
RT_INLINE float __fadd_rn(float a, float b) { return a + b; }
RT_INLINE float __fsub_rn(float a, float b) { return a - b; }
RT_INLINE float __fdiv_rn(float a, float b) { return a / b; }
RT_INLINE float __fsqrt_rn(float a) { return sqrtf(a); }
RT_INLINE float __fmaf_rn(float a, float b, float c) { return fmaf(a, b, c); }
RT_INLINE double __dmul_rn(double a, double b) { return a * b; }
RT_INLINE double __dadd_rn(double a, double b) { return a + b; }
RT_INLINE float __double2float_rn(double a) { return (float)a; }
RT_INLINE unsigned __umulhi(unsigned a, unsigned b) { return (unsigned)((uint64_t)a * b >> 32); }
RT_INLINE unsigned __float_as_uint(float a) {
  unsigned u;
  memcpy(&u, &a, 4);
  return u;
}
RT_INLINE float __uint_as_float(unsigned u) {
  float a;
  memcpy(&a, &u, 4);
  return a;
}
template <class T> RT_INLINE T min(T a, T b) { return b < a ? b : a; }
template <class T> RT_INLINE T max(T a, T b) { return a < b ? b : a; }

// The compiler inserts calls of these before loads and stores.
#define RT_HIDDEN __attribute__((visibility("hidden"), no_sanitize("kernel-address")))
#define RT_CHECK(bytes)                                                                                          \
  RT_HIDDEN void __asan_load##bytes##_noabort(const void* at) { rt_machine.access(at, bytes, RT_READ); }         \
  RT_HIDDEN void __asan_store##bytes##_noabort(const void* at) { rt_machine.access(at, bytes, RT_WRITE); }
extern "C" {
RT_CHECK(1)
RT_CHECK(2)
RT_CHECK(4)
RT_CHECK(8)
RT_CHECK(16)
RT_HIDDEN void __asan_loadN_noabort(const void* at, size_t n) { rt_machine.access(at, n, RT_READ); }
RT_HIDDEN void __asan_storeN_noabort(const void* at, size_t n) { rt_machine.access(at, n, RT_WRITE); }
RT_HIDDEN void __asan_handle_no_return() {}
RT_HIDDEN void __ubsan_handle_type_mismatch_v1(void*, uintptr_t at) { rt_machine.misaligned((const void*)at); }
extern char __start_rt_shared[] __attribute__((weak, visibility("hidden")));
extern char __stop_rt_shared[] __attribute__((weak, visibility("hidden")));
extern char __ehdr_start[] __attribute__((visibility("hidden")));
extern char _end[] __attribute__((visibility("hidden")));
}

// The table of kernels, with a comma after each entry. An entry calls a kernel with an array of
// pointers to arguments.
template <auto F> struct rt_call;
template <class... A, void (*F)(A...)> struct rt_call<F> {
  static constexpr unsigned sizes[sizeof...(A) + 1] = {(unsigned)sizeof(A)..., 0};
  static constexpr int count = sizeof...(A);
  template <size_t... I> struct at {};
  template <size_t... I> RT_UNCHECKED void with(void** args, at<I...>) { F(*(A*)args[I]...); }
  template <size_t N, size_t... I> struct upto : upto<N - 1, N - 1, I...> {};
  template <size_t... I> struct upto<0, I...> {
    using list = at<I...>;
  };
  __attribute__((no_sanitize("kernel-address"))) static void go(void** args) { with(args, typename upto<sizeof...(A)>::list{}); }
};
#define RT_ENTRY(f, threads) {#f, rt_call<f>::go, rt_call<f>::count, rt_call<f>::sizes, threads}
#define RT_TABLE(...)                                                                                            \
  extern "C" __attribute__((visibility("default"), no_sanitize("kernel-address"))) void rt_open(const rt_hooks* hooks, rt_module* m) {          \
    static const rt_kernel kernels[] = {__VA_ARGS__ {0, 0, 0, 0, 0}};                                              \
    rt_machine = *hooks;                                                                                         \
    *m = rt_module{kernels, (int)(sizeof kernels / sizeof *kernels) - 1, &threadIdx, &blockIdx, &blockDim,       \
                   &gridDim, &rt_lane, __start_rt_shared, __stop_rt_shared, __ehdr_start, _end};                 \
  }
