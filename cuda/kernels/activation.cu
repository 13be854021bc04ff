// Activation functions and average pooling. Equal to nn/cpu bit for bit, except that a NaN may
// be another NaN.

// y = x·Φ(x): Backend.Gelu.
extern "C" __global__ void gelu(float* y, const float* x, i64 n) {
  map(y, x, n, [](float v) {
    float e;
    return __fmul_rn(v, normal_at(v, e));
  });
}

// dx = dy·(Φ(x) + x·φ(x)): Backend.GeluGrad.
extern "C" __global__ void gelu_grad(float* dx, const float* dy, const float* x, i64 n) {
  map2(dx, dy, x, n, [](float d, float v) {
    float e, c = normal_at(v, e);
    return __fmul_rn(d, __fadd_rn(c, __fmul_rn(v, __fmul_rn(e, .3989422804f))));
  });
}

// best_piece returns the first index of the largest of an output's pieces. A NaN wins only
// if it is the first.
__device__ __forceinline__ int best_piece(const float* x, int pieces) {
  int best = 0;
  for (int k = 1; k < pieces; k++)
    if (x[k] > x[best]) best = k;
  return best;
}

// Backend.Maxout, with n outputs. y is not x.
extern "C" __global__ void maxout(float* y, const float* x, i64 n, int pieces) {
  for (i64 i = global_thread(); i < n; i += global_threads()) {
    const float* piece = x + i * pieces;
    y[i] = piece[best_piece(piece, pieces)];
  }
}

// Backend.MaxoutGrad, with n outputs. dx may be x.
extern "C" __global__ void maxout_grad(float* dx, const float* dy, const float* x, i64 n, int pieces) {
  for (i64 i = global_thread(); i < n; i += global_threads()) {
    int best = best_piece(x + i * pieces, pieces);
    for (int k = 0; k < pieces; k++) dx[i * pieces + k] = k == best ? dy[i] : 0.f;
  }
}

// Backend.AvgPool. planes is rows times channels; share is 1/size². y is not x.
extern "C" __global__ void avg_pool(float* y, const float* x, int planes, float share, Window s) {
  int plane = s.out_height * s.out_width;
  i64 n = (i64)planes * plane;
  for (i64 e = global_thread(); e < n; e += global_threads()) {
    int top = (int)(e / s.out_width % s.out_height) * s.stride - s.padding, left = (int)(e % s.out_width) * s.stride - s.padding;
    int bottom = min(top + s.size, s.height), right = min(left + s.size, s.width);
    const float* image = x + e / plane * s.height * s.width;
    float sum = 0.f;
    for (int r = max(top, 0); r < bottom; r++)
      for (int q = max(left, 0); q < right; q++) sum = __fadd_rn(sum, image[r * s.width + q]);
    y[e] = __fmul_rn(sum, share);
  }
}

// Backend.AvgPoolGrad. dx is not dy.
extern "C" __global__ void avg_pool_grad(float* dx, const float* dy, int planes, float share, Window s) {
  int plane = s.out_height * s.out_width, area = s.height * s.width;
  i64 n = (i64)planes * area;
  for (i64 e = global_thread(); e < n; e += global_threads()) {
    int q = (int)(e % s.width), r = (int)(e / s.width % s.height);
    const float* gradient = dy + e / area * plane;
    float sum = 0.f;
    // The first window that reaches down to row r, and right to column q.
    int i0 = max(0, (r + s.padding - s.size + s.stride) / s.stride), j0 = max(0, (q + s.padding - s.size + s.stride) / s.stride);
    for (int i = i0; i < s.out_height && i * s.stride - s.padding <= r; i++)
      for (int j = j0; j < s.out_width && j * s.stride - s.padding <= q; j++) sum = __fadd_rn(sum, __fmul_rn(gradient[i * s.out_width + j], share));
    dx[e] = sum;
  }
}
