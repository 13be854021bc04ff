// Sums and columns of matrices. Equal to nn/cpu bit for bit.

// y = a + b: Backend.Add.
extern "C" __global__ void add(float* y, const float* a, const float* b, i64 n) {
  map2(y, a, b, n, [](float v, float w) { return __fadd_rn(v, w); });
}

// Backend.Insert, with n elements of x.
extern "C" __global__ void insert(float* y, const float* x, i64 n, int width, int at, int part) {
  for (i64 e = global_thread(); e < n; e += global_threads()) y[e / part * width + at + e % part] = x[e];
}

// Backend.Extract, with n elements of x.
extern "C" __global__ void extract(float* x, const float* y, i64 n, int width, int at, int part) {
  for (i64 e = global_thread(); e < n; e += global_threads()) x[e] = y[e / part * width + at + e % part];
}
