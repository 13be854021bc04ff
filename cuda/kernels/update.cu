// Optimizers. Equal to nn/cpu bit for bit. hyper is nn.HyperLen numbers in device memory, so
// that each repetition of a recorded step has its own.
//
// Kernels with _arena in their names update all parameters, which are in one arena, at once.
// Run r is parameter r. Each block of threads has the Block of the same number, which is
// BlockSize elements or the rest of a run. In an update the second dimension of the grid
// divides a Block, so that small networks keep the whole device busy, too.

struct Run {
  i64 at;           // of the first element in the arena
  i64 n;            // elements
  int norm, norms;  // index of its first norm, and their number
};
struct Block {
  int run, index;
};

// block_begin returns the first element of a Block in the arena.
__device__ __forceinline__ i64 block_begin(const Run& r, const Block& b) { return r.at + (i64)b.index * RT_BLOCK_SIZE; }

// block_length returns the number of elements of a Block.
__device__ __forceinline__ int block_length(const Run& r, const Block& b) { return (int)min(r.n - (i64)b.index * RT_BLOCK_SIZE, (i64)RT_BLOCK_SIZE); }

// stopped reports whether commit has withheld the update. stop may be null.
__device__ __forceinline__ bool stopped(const int* stop) { return stop && *stop != 0; }

// block_squares returns the sum of (scale·g + l2·w)² over n elements, at most BlockSize, in
// thread 0 of a block of 256 threads. As in nn/cpu, element i belongs to partial sum i mod 16,
// in order.
__device__ __forceinline__ float block_squares(const float* g, float scale, const float* w, float l2, int n) {
  __shared__ double squares[RT_BLOCK_SIZE];
  __shared__ double sums[16];
  const int batch = 8;  // concurrent loads per thread
  for (int first = threadIdx.x; first < n; first += batch * blockDim.x) {
    float gs[batch], ws[batch];
#pragma unroll
    for (int k = 0; k < batch; k++) {
      int i = first + k * blockDim.x;
      gs[k] = i < n ? g[i] : 0.f;
      ws[k] = i < n ? w[i] : 0.f;
    }
#pragma unroll
    for (int k = 0; k < batch; k++) {
      int i = first + k * blockDim.x;
      double v = (double)__fadd_rn(__fmul_rn(scale, gs[k]), __fmul_rn(l2, ws[k]));
      if (i < n) squares[i] = __dmul_rn(v, v);
    }
  }
  __syncthreads();
  if (threadIdx.x < 16) {
    double s = 0;
#pragma unroll 8
    for (int i = threadIdx.x; i < n; i += 16) s = __dadd_rn(s, squares[i]);
    sums[threadIdx.x] = s;
  }
  __syncthreads();
  double quarter[4];
  for (int i = 0; i < 4; i++) quarter[i] = __dadd_rn(__dadd_rn(sums[i], sums[4 + i]), __dadd_rn(sums[8 + i], sums[12 + i]));
  return (float)__dadd_rn(__dadd_rn(quarter[0], quarter[1]), __dadd_rn(quarter[2], quarter[3]));
}

// Backend.SquaredNorm: block k of threads sets sums[k].
extern "C" __global__ void squared_norm(float* sums, const float* g, const float* w, const float* hyper, i64 n) {
  i64 at = (i64)blockIdx.x * RT_BLOCK_SIZE;
  int length = (int)min(n - at, (i64)RT_BLOCK_SIZE);
  float s = block_squares(g + at, 1.f, w + at, hyper[RT_HYPER_L2], length);
  if (threadIdx.x == 0) sums[blockIdx.x] = s;
}

// SquaredNorm of scale·g for all parameters, if gradients are clipped. It runs before every
// update of an arena.
extern "C" __global__ void squared_norm_arena(float* sums, const float* g, float scale, const float* w, const float* hyper, const Run* runs,
                    const Block* blocks) {
  if (!(hyper[RT_HYPER_CLIP] > 0.f)) return;
  Block b = blocks[blockIdx.x];
  Run r = runs[b.run];
  i64 at = block_begin(r, b);
  float s = block_squares(g + at, scale, w + at, hyper[RT_HYPER_L2], block_length(r, b));
  if (threadIdx.x == 0) sums[r.norm + b.index] = s;
}

// clip_scale returns the factor that clips a gradient with n block norms, in all threads of a
// block. All threads load the norms to shared memory, and one adds them in order.
__device__ __forceinline__ float clip_scale(const float* norms, int n, float clip) {
  __shared__ float some[256];
  __shared__ double total;
  if (!(clip > 0.f)) return 1.f;
  double sum = 0;
  for (int from = 0; from < n; from += 256) {
    int length = min(n - from, 256);
    for (int i = threadIdx.x; i < length; i += blockDim.x) some[i] = norms[from + i];
    __syncthreads();
    if (threadIdx.x == 0)
      for (int i = 0; i < length; i++) sum = __dadd_rn(sum, (double)some[i]);
    __syncthreads();
  }
  if (threadIdx.x == 0) total = sum;
  __syncthreads();
  double norm = sqrt(total);
  return norm >= (double)clip ? (float)((double)clip / norm) : 1.f;
}

struct Terms {
  float scale, clip, l2, rate, decay, eps, beta1, mix1, beta2, mix2, average;
};

__device__ __forceinline__ Terms terms(const float* h, float scale, float clip) {
  return Terms{scale,
               clip,
               h[RT_HYPER_L2],
               h[RT_HYPER_RATE],
               h[RT_HYPER_DECAY],
               h[RT_HYPER_EPS],
               h[RT_HYPER_BETA1],
               h[RT_HYPER_MIX1],
               h[RT_HYPER_BETA2],
               h[RT_HYPER_MIX2],
               h[RT_HYPER_AVERAGE]};
}

// gradient is scale·g with L2 and clipping.
__device__ __forceinline__ float gradient(const Terms& t, float g, float w) { return __fmul_rn(t.clip, __fadd_rn(__fmul_rn(t.scale, g), __fmul_rn(t.l2, w))); }

// finish applies weight decay, stores the weight, and updates its average.
__device__ __forceinline__ void finish(const Terms& t, float* w, float* average, i64 i, float v) {
  v = __fsub_rn(v, __fmul_rn(t.decay, v));
  w[i] = v;
  if (average) average[i] = __fsub_rn(average[i], __fmul_rn(t.average, __fsub_rn(average[i], v)));
}

__device__ __forceinline__ void adam_element(const Terms& t, float* w, const float* g, float* m, float* v, float* average, i64 i) {
  float wi = w[i], gi = gradient(t, g[i], wi);
  float mi = __fadd_rn(__fmul_rn(t.beta1, m[i]), __fmul_rn(t.mix1, gi));
  float vi = __fadd_rn(__fmul_rn(t.beta2, v[i]), __fmul_rn(__fmul_rn(t.mix2, gi), gi));
  if (mi < smallest_normal && mi > -smallest_normal) mi = 0.f;
  if (vi < smallest_normal) vi = 0.f;
  m[i] = mi;
  v[i] = vi;
  wi = __fsub_rn(wi, __fdiv_rn(__fmul_rn(t.rate, mi), __fadd_rn(__fsqrt_rn(vi), t.eps)));
  finish(t, w, average, i, wi);
}

__device__ __forceinline__ void sgd_element(const Terms& t, float* w, const float* g, float* average, i64 i) {
  float wi = w[i];
  finish(t, w, average, i, __fsub_rn(wi, __fmul_rn(t.rate, gradient(t, g[i], wi))));
}

// Backend.Adam. average may be null. The norm_count norms cover the whole parameter. w may be
// a part of it.
extern "C" __global__ void adam(float* w, const float* g, float* m, float* v, float* average, const float* norms, int norm_count, const float* hyper, i64 n,
               const int* stop) {
  if (stopped(stop)) return;
  Terms t = terms(hyper, 1.f, clip_scale(norms, norm_count, hyper[RT_HYPER_CLIP]));
  for (i64 i = global_thread(); i < n; i += global_threads()) adam_element(t, w, g, m, v, average, i);
}

// Backend.SGD.
extern "C" __global__ void sgd(float* w, const float* g, float* average, const float* norms, int norm_count, const float* hyper, i64 n, const int* stop) {
  if (stopped(stop)) return;
  Terms t = terms(hyper, 1.f, clip_scale(norms, norm_count, hyper[RT_HYPER_CLIP]));
  for (i64 i = global_thread(); i < n; i += global_threads()) sgd_element(t, w, g, average, i);
}

// Adam on all parameters with gradients scale·g. If clear is not 0, it then sets g to 0.
extern "C" __global__ void adam_arena(float* w, float* g, float scale, int clear, float* m, float* v, float* average, const float* norms, const float* hyper, const Run* runs,
                     const Block* blocks, const int* stop) {
  if (stopped(stop)) return;
  Block b = blocks[blockIdx.x];
  Run r = runs[b.run];
  Terms t = terms(hyper, scale, clip_scale(norms + r.norm, r.norms, hyper[RT_HYPER_CLIP]));
  i64 at = block_begin(r, b);
  int part = RT_BLOCK_SIZE / (int)gridDim.y, from = (int)blockIdx.y * part, to = min(block_length(r, b), from + part);
  for (int i = from + threadIdx.x; i < to; i += blockDim.x) {
    adam_element(t, w, g, m, v, average, at + i);
    if (clear) g[at + i] = 0.f;
  }
}

// SGD on all parameters, likewise.
extern "C" __global__ void sgd_arena(float* w, float* g, float scale, int clear, float* average, const float* norms, const float* hyper, const Run* runs, const Block* blocks,
                    const int* stop) {
  if (stopped(stop)) return;
  Block b = blocks[blockIdx.x];
  Run r = runs[b.run];
  Terms t = terms(hyper, scale, clip_scale(norms + r.norm, r.norms, hyper[RT_HYPER_CLIP]));
  i64 at = block_begin(r, b);
  int part = RT_BLOCK_SIZE / (int)gridDim.y, from = (int)blockIdx.y * part, to = min(block_length(r, b), from + part);
  for (int i = from + threadIdx.x; i < to; i += blockDim.x) {
    sgd_element(t, w, g, average, at + i);
    if (clear) g[at + i] = 0.f;
  }
}

// Backend.Follow: value = keep·value + momentum·mean, and a copy of it in average, which may be
// null.
extern "C" __global__ void follow(float* value, float* average, const float* mean, float keep, float momentum, i64 n, const int* stop) {
  if (stopped(stop)) return;
  for (i64 i = global_thread(); i < n; i += global_threads()) {
    float v = __fadd_rn(__fmul_rn(keep, value[i]), __fmul_rn(momentum, mean[i]));
    value[i] = v;
    if (average) average[i] = v;
  }
}
