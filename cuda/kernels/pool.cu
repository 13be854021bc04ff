// Max-pooling. Equal to nn/cpu bit for bit, except that a NaN may be another NaN.

// larger is Go's max: NaN if either is NaN, and 0 is larger than -0.
__device__ __forceinline__ float larger(float a, float b) {
  if (a != a) return a;
  if (b != b) return b;
  if (a == 0.f && b == 0.f) return a + b;
  return a < b ? b : a;
}

// Backend.MaxPool. planes is rows times channels. y must not be x.
extern "C" __global__ void max_pool(float* y, const float* x, int planes, Window s) {
  int plane = s.out_height * s.out_width;
  i64 n = (i64)planes * plane;
  for (i64 e = global_thread(); e < n; e += global_threads()) {
    int top = (int)(e / s.out_width % s.out_height) * s.stride - s.padding, left = (int)(e % s.out_width) * s.stride - s.padding;
    int bottom = min(top + s.size, s.height), right = min(left + s.size, s.width);
    top = max(top, 0), left = max(left, 0);
    const float* image = x + e / plane * s.height * s.width;
    float most = image[top * s.width + left];
    for (int r = top; r < bottom; r++)
      for (int q = left; q < right; q++) most = larger(most, image[r * s.width + q]);
    y[e] = most;
  }
}

// like reports whether v counts as the maximum m of its window.
__device__ __forceinline__ bool like(float v, float m) { return v == m || (v != v && m != m); }

// Backend.MaxPoolGrad. An element of dx sums dy over the windows of which it is the first
// maximum, in order. dx must not be another operand.
extern "C" __global__ void max_pool_grad(float* dx, const float* dy, const float* x, const float* y, int planes, Window s) {
  int plane = s.out_height * s.out_width, area = s.height * s.width;
  i64 n = (i64)planes * area;
  for (i64 e = global_thread(); e < n; e += global_threads()) {
    int q = (int)(e % s.width), r = (int)(e / s.width % s.height);
    i64 p = e / area;
    const float* image = x + p * area;
    float v = image[r * s.width + q], sum = 0.f;
    // The first window that reaches down to row r, and right to column q.
    int i0 = max(0, (r + s.padding - s.size + s.stride) / s.stride), j0 = max(0, (q + s.padding - s.size + s.stride) / s.stride);
    for (int i = i0; i < s.out_height && i * s.stride - s.padding <= r; i++)
      for (int j = j0; j < s.out_width && j * s.stride - s.padding <= q; j++) {
        i64 at = p * plane + i * s.out_width + j;
        float d = dy[at], most = y[at];
        if (d == 0.f || !like(v, most)) continue;
        int top = max(i * s.stride - s.padding, 0), left = max(j * s.stride - s.padding, 0), right = min(j * s.stride - s.padding + s.size, s.width);
        bool first = true;
        for (int a = top; a <= r && first; a++)
          for (int b = left; b < (a < r ? right : q) && first; b++) first = !like(image[a * s.width + b], most);
        if (first) sum += d;
      }
    dx[e] = sum;
  }
}
