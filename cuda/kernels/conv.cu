// Convolution. A thread computes each element of the result separately. Filters are small,
// so their elements and the window's stay in the nearest cache. A Window is nn.Window. The
// image is 0 outside its borders. Rows are independent of each other.

struct Window {
  int channels, height, width;  // of one row of input
  int size, stride, padding;
  int out_height, out_width;
};

__device__ __forceinline__ int taps(const Window& s) { return s.channels * s.size * s.size; }

// Backend.Conv2D, bit for bit. It sums the bias first, then a filter's elements in order.
extern "C" __global__ void conv2d(float* y, const float* x, const float* w, const float* b, int rows, int filters, Window s) {
  int plane = s.out_height * s.out_width;
  i64 n = (i64)rows * filters * plane;
  for (i64 e = global_thread(); e < n; e += global_threads()) {
    int j = (int)(e % s.out_width), i = (int)(e / s.out_width % s.out_height), o = (int)(e / plane % filters);
    const float* image = x + e / ((i64)plane * filters) * s.channels * s.height * s.width;
    const float* filter = w + (i64)o * taps(s);
    int top = i * s.stride - s.padding, left = j * s.stride - s.padding;
    float sum = b[o];
    for (int c = 0; c < s.channels; c++, image += s.height * s.width)
      for (int u = 0; u < s.size; u++)
        for (int v = 0; v < s.size; v++) {
          int r = top + u, q = left + v;
          bool inside = r >= 0 && r < s.height && q >= 0 && q < s.width;
          sum = __fadd_rn(sum, __fmul_rn(*filter++, inside ? image[r * s.width + q] : 0.f));
        }
    y[e] = sum;
  }
}

// Backend.Conv2DInputGrad, bit for bit. It sums over filters in order, and over the elements
// of each. dx must not be dy.
extern "C" __global__ void conv2d_input_grad(float* dx, const float* dy, const float* w, int rows, int filters, Window s) {
  int plane = s.out_height * s.out_width, area = s.height * s.width, square = s.size * s.size;
  i64 n = (i64)rows * s.channels * area;
  for (i64 e = global_thread(); e < n; e += global_threads()) {
    int q = (int)(e % s.width) + s.padding, r = (int)(e / s.width % s.height) + s.padding, c = (int)(e / area % s.channels);
    const float* gradient = dy + e / ((i64)area * s.channels) * filters * plane;
    float sum = 0.f;
    for (int o = 0; o < filters; o++, gradient += plane) {
      const float* filter = w + ((i64)o * s.channels + c) * square;
      for (int u = 0; u < s.size; u++)
        for (int v = 0; v < s.size; v++, filter++) {
          int i = r - u, j = q - v;
          if (i < 0 || j < 0 || i % s.stride || j % s.stride) continue;
          i /= s.stride, j /= s.stride;
          if (i < s.out_height && j < s.out_width) sum = __fadd_rn(sum, __fmul_rn(*filter, gradient[i * s.out_width + j]));
        }
    }
    dx[e] = sum;
  }
}

// The first of two steps of Backend.Conv2DGrad. blockIdx.x is an element of dw or, after
// those, of db. blockIdx.y is one of gridDim.y equal shares of the rows. The sum of the share
// goes to partial[blockIdx.y][blockIdx.x].
extern "C" __global__ void conv2d_grad_parts(float* partial, const float* dy, const float* x, int rows, int filters, Window s) {
  __shared__ float part[32];
  int plane = s.out_height * s.out_width, square = s.size * s.size, weights = filters * taps(s);
  int e = blockIdx.x;
  bool bias = e >= weights;
  int o = bias ? e - weights : e / taps(s), tap = bias ? 0 : e % taps(s);
  int c = tap / square, u = tap % square / s.size, v = tap % s.size;
  int share = (rows + gridDim.y - 1) / gridDim.y, first = blockIdx.y * share, last = min(rows, first + share);
  float sum = 0.f;
  for (int k = threadIdx.x; k < (last - first) * plane; k += blockDim.x) {
    int row = first + k / plane, at = k % plane;
    float d = dy[((i64)row * filters + o) * plane + at];
    if (bias) {
      sum += d;
      continue;
    }
    int r = at / s.out_width * s.stride - s.padding + u, q = at % s.out_width * s.stride - s.padding + v;
    if (d != 0.f && r >= 0 && r < s.height && q >= 0 && q < s.width)
      sum = __fmaf_rn(d, x[(((i64)row * s.channels + c) * s.height + r) * s.width + q], sum);
  }
  for (int bits = 16; bits > 0; bits /= 2) sum += __shfl_xor_sync(whole_warp, sum, bits);
  if (threadIdx.x % 32 == 0) part[threadIdx.x / 32] = sum;
  __syncthreads();
  if (threadIdx.x > 0) return;
  float total = 0.f;
  for (int i = 0; i < (int)blockDim.x / 32; i++) total += part[i];
  partial[(i64)blockIdx.y * gridDim.x + e] = total;
}

// The second step adds the shares to dw, which has weights elements, and db.
extern "C" __global__ void conv2d_grad(float* dw, float* db, const float* partial, int weights, int filters, int shares) {
  int n = weights + filters;
  for (int e = (int)global_thread(); e < n; e += (int)global_threads()) {
    float sum = 0.f;
    for (int k = 0; k < shares; k++) sum += partial[(i64)k * n + e];
    float* to = e < weights ? dw + e : db + (e - weights);
    *to += sum;
  }
}
