// Layer and batch normalisation. Equal to nn/cpu bit for bit, except for layer_norm_weights.
// Sixteen lanes have one row or one plane at a time, because nn.Norms adds element i to
// partial sum i mod 16.

__device__ __forceinline__ int lane16() { return threadIdx.x % 16; }

// sum16 returns the sum of f(0) to f(n-1) in the order of nn.Norms, in all lanes of a half of
// a warp. Both halves call it; n may differ.
template <class F> __device__ __forceinline__ float sum16(int n, F f) {
  float s = 0.f;
  for (int i = lane16(); i < n; i += 16) s = __fadd_rn(s, f(i));
  for (int bits = 8; bits > 0; bits /= 2) s = __fadd_rn(s, __shfl_xor_sync(whole_warp, s, bits));
  return s;
}

// halves calls f with each of n items, one per half of a warp, and with whether there is one:
// all lanes of a warp make the same calls.
template <class F> __device__ __forceinline__ void halves(int n, F f) {
  for (int first = 2 * row_of_warp(); first < n; first += 2 * rows_at_once()) {
    int i = first + lane() / 16;
    f(i, i < n);
  }
}

// inverse_root returns 1/√v.
__device__ __forceinline__ float inverse_root(float v) { return __fdiv_rn(1.f, __fsqrt_rn(v)); }

// normalised returns (x-mean)·r.
__device__ __forceinline__ float normalised(float x, float mean, float r) { return __fmul_rn(__fsub_rn(x, mean), r); }

// Backend.LayerNorm.
extern "C" __global__ void layer_norm(float* y, float* moments, const float* x, const float* g, const float* b, int rows, int width, float eps) {
  halves(rows, [=](int i, bool is) {
    int n = is ? width : 0;
    const float* in = x + (i64)i * width;
    float mean = __fdiv_rn(sum16(n, [=](int j) { return in[j]; }), (float)width);
    float variance = __fdiv_rn(sum16(n, [=](int j) { float d = __fsub_rn(in[j], mean); return __fmul_rn(d, d); }), (float)width);
    float r = inverse_root(__fadd_rn(variance, eps));
    for (int j = lane16(); j < n; j += 16) y[(i64)i * width + j] = __fadd_rn(__fmul_rn(normalised(in[j], mean, r), g[j]), b[j]);
    if (is && lane16() == 0) moments[2 * i] = mean, moments[2 * i + 1] = r;
  });
}

// The gradient of the input of Backend.LayerNormGrad. dx may be dy.
extern "C" __global__ void layer_norm_grad(float* dx, const float* dy, const float* x, const float* moments, const float* g, int rows, int width) {
  halves(rows, [=](int i, bool is) {
    int n = is ? width : 0;
    const float *in = x + (i64)i * width, *d = dy + (i64)i * width;
    float mean = is ? moments[2 * i] : 0.f, r = is ? moments[2 * i + 1] : 0.f;
    float s = __fdiv_rn(sum16(n, [=](int j) { return __fmul_rn(d[j], g[j]); }), (float)width);
    float t = __fdiv_rn(sum16(n, [=](int j) { return __fmul_rn(__fmul_rn(d[j], g[j]), normalised(in[j], mean, r)); }), (float)width);
    for (int j = lane16(); j < n; j += 16) {
      float h = __fmul_rn(d[j], g[j]);
      dx[(i64)i * width + j] = __fmul_rn(r, __fsub_rn(__fsub_rn(h, s), __fmul_rn(normalised(in[j], mean, r), t)));
    }
  });
}

// The gradients of g and b of Backend.LayerNormGrad, in the order of sum_rows: each
// threadIdx.y sums every 32nd row, and these sums are added in order.
extern "C" __global__ void __launch_bounds__(1024) layer_norm_weights(float* dg, float* db, const float* dy, const float* x, const float* moments, int rows, int columns) {
  __shared__ float scale[32][33], shift[32][33];
  int column = blockIdx.x * 32 + threadIdx.x;
  float s = 0.f, t = 0.f;
  if (column < columns)
    for (int i = threadIdx.y; i < rows; i += 32) {
      float d = dy[(i64)i * columns + column];
      s += d * normalised(x[(i64)i * columns + column], moments[2 * i], moments[2 * i + 1]);
      t += d;
    }
  scale[threadIdx.y][threadIdx.x] = s;
  shift[threadIdx.y][threadIdx.x] = t;
  __syncthreads();
  if (threadIdx.y == 0 && column < columns) {
    s = t = 0.f;
    for (int i = 0; i < 32; i++) s += scale[i][threadIdx.x], t += shift[i][threadIdx.x];
    dg[column] += s;
    db[column] += t;
  }
}

// Sums of planes for Backend.ChannelMoments: of x or, if there are means, of (x-mean)². A row
// of parts has a sum per channel.
extern "C" __global__ void plane_sums(float* parts, const float* x, const float* mean, int planes, int channels, int plane) {
  halves(planes, [=](int i, bool is) {
    int n = is ? plane : 0;
    const float* in = x + (i64)i * plane;
    float s;
    if (mean) {
      float m = is ? mean[i % channels] : 0.f;
      s = sum16(n, [=](int j) { float d = __fsub_rn(in[j], m); return __fmul_rn(d, d); });
    } else {
      s = sum16(n, [=](int j) { return in[j]; });
    }
    if (is && lane16() == 0) parts[i] = s;
  });
}

// Sums of planes for Backend.BatchNormGrad. A row of parts has the sum of dy per channel, then
// that of dy·z.
extern "C" __global__ void plane_grads(float* parts, const float* dy, const float* x, const float* mean, const float* variance, int planes, int channels, int plane, float eps) {
  halves(planes, [=](int i, bool is) {
    int n = is ? plane : 0, c = is ? i % channels : 0;
    const float *in = x + (i64)i * plane, *d = dy + (i64)i * plane;
    float m = mean[c], r = inverse_root(__fadd_rn(variance[c], eps));
    float s = sum16(n, [=](int j) { return d[j]; });
    float t = sum16(n, [=](int j) { return __fmul_rn(d[j], normalised(in[j], m, r)); });
    if (is && lane16() == 0) {
      float* at = parts + (i64)(i / channels) * 2 * channels + c;
      at[0] = s;
      at[channels] = t;
    }
  });
}

// The end of both: sums[c] is the sum of column c of parts, in row order, divided by a count.
extern "C" __global__ void channel_sums(float* sums, const float* parts, int rows, int columns, float count) {
  for (i64 c = global_thread(); c < columns; c += global_threads()) {
    float s = 0.f;
    for (int i = 0; i < rows; i++) s = __fadd_rn(s, parts[(i64)i * columns + c]);
    sums[c] = __fdiv_rn(s, count);
  }
}

// Backend.BatchNorm. y may be x.
extern "C" __global__ void batch_norm(float* y, const float* x, const float* g, const float* b, const float* mean, const float* variance, i64 n, int channels, int plane, float eps) {
  for (i64 i = global_thread(); i < n; i += global_threads()) {
    int c = (int)(i / plane % channels);
    float r = inverse_root(__fadd_rn(variance[c], eps));
    y[i] = __fadd_rn(__fmul_rn(normalised(x[i], mean[c], r), g[c]), b[c]);
  }
}

// The gradient of the input of Backend.BatchNormGrad. sums has the channels' sums of dy, then
// those of dy·z; it is null if the moments are fixed. count is the number of elements per
// channel. dx may be dy.
extern "C" __global__ void batch_norm_grad(float* dx, const float* dy, const float* x, const float* g, const float* mean, const float* variance, const float* sums, i64 n,
                                           int channels, int plane, float count, float eps) {
  for (i64 i = global_thread(); i < n; i += global_threads()) {
    int c = (int)(i / plane % channels);
    float r = inverse_root(__fadd_rn(variance[c], eps)), factor = __fmul_rn(g[c], r), d = dy[i];
    if (sums) {
      float s = __fdiv_rn(sums[c], count), t = __fdiv_rn(sums[channels + c], count);
      d = __fsub_rn(__fsub_rn(d, s), __fmul_rn(normalised(x[i], mean[c], r), t));
    }
    dx[i] = __fmul_rn(factor, d);
  }
}
