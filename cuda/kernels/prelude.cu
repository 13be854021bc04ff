// Shared by the other files: element counts, loops, sums over a warp and a block.
//
// Rules for all kernels: entry points have C names, and arguments are scalars, pointers or
// structs of them. There is no dynamic shared memory and no inline PTX. Every thread of a
// block reaches each barrier. A kernel that promises the bits of nn/cpu uses __fmul_rn and
// __fadd_rn, which compilers never fuse.

typedef unsigned long long u64;
typedef long long i64;

const unsigned whole_warp = 0xffffffffu;
const float smallest_normal = 1.17549435e-38f;  // 2^-126

__device__ __forceinline__ float infinity() { return __uint_as_float(0x7f800000u); }

__device__ __forceinline__ i64 global_thread() { return (i64)blockIdx.x * blockDim.x + threadIdx.x; }
__device__ __forceinline__ i64 global_threads() { return (i64)gridDim.x * blockDim.x; }

__device__ __forceinline__ bool aligned16(const void* p) { return ((u64)p & 15) == 0; }

// map sets y = f(x) for n elements, four at a time if the alignment allows. y may be x.
template <class F> __device__ __forceinline__ void map(float* y, const float* x, i64 n, F f) {
  i64 fours = aligned16(y) && aligned16(x) ? n / 4 : 0;
  for (i64 i = global_thread(); i < fours; i += global_threads()) {
    float4 v = ((const float4*)x)[i];
    ((float4*)y)[i] = make_float4(f(v.x), f(v.y), f(v.z), f(v.w));
  }
  for (i64 i = 4 * fours + global_thread(); i < n; i += global_threads()) y[i] = f(x[i]);
}

// map2 sets y = f(a, b) for n elements. y may be a or b.
template <class F> __device__ __forceinline__ void map2(float* y, const float* a, const float* b, i64 n, F f) {
  i64 fours = aligned16(y) && aligned16(a) && aligned16(b) ? n / 4 : 0;
  for (i64 i = global_thread(); i < fours; i += global_threads()) {
    float4 v = ((const float4*)a)[i], w = ((const float4*)b)[i];
    ((float4*)y)[i] = make_float4(f(v.x, w.x), f(v.y, w.y), f(v.z, w.z), f(v.w, w.w));
  }
  for (i64 i = 4 * fours + global_thread(); i < n; i += global_threads()) y[i] = f(a[i], b[i]);
}

__device__ __forceinline__ double warp_sum(double v) {
  for (int bits = 16; bits > 0; bits /= 2) v += __shfl_xor_sync(whole_warp, v, bits);
  return v;
}
__device__ __forceinline__ float warp_max(float v) {
  for (int bits = 16; bits > 0; bits /= 2) v = fmaxf(v, __shfl_xor_sync(whole_warp, v, bits));
  return v;
}
