// Regression: the squared error, and losses that grow more slowly.

// error_sum adds scale·Σᵢ f(y[i] - t[i]) to loss[0], summed in float64 by one block.
template <class F> __device__ __forceinline__ void error_sum(float* loss, const float* y, const float* t, i64 n, double scale, F f) {
  double sum = 0;
  for (i64 i = threadIdx.x; i < n; i += blockDim.x) sum += f((double)__fsub_rn(y[i], t[i]));
  double total = block_sum(sum);
  if (threadIdx.x == 0) loss[0] = __fadd_rn(loss[0], (float)(total * scale));
}

// The loss of Backend.SquaredError.
extern "C" __global__ void __launch_bounds__(1024) squared_error(float* loss, const float* y, const float* t, i64 n) {
  error_sum(loss, y, t, n, .5, [](double e) { return e * e; });
}

// The gradient of Backend.SquaredError, bit for bit: d = y - t. d may be y or t.
extern "C" __global__ void squared_error_grad(float* d, const float* y, const float* t, i64 n) {
  map2(d, y, t, n, [](float a, float b) { return __fsub_rn(a, b); });
}

// The loss of Backend.HuberError.
extern "C" __global__ void __launch_bounds__(1024) huber_error(float* loss, const float* y, const float* t, float delta, i64 n) {
  error_sum(loss, y, t, n, .5, [=](double e) {
    double size = fabs(e), limit = (double)delta;
    return size > limit ? limit * (2 * size - limit) : size * size;
  });
}

// The gradient of Backend.HuberError, bit for bit. d may be y or t.
extern "C" __global__ void huber_error_grad(float* d, const float* y, const float* t, float delta, i64 n) {
  map2(d, y, t, n, [=](float a, float b) {
    float e = __fsub_rn(a, b);
    return e > delta ? delta : e < -delta ? -delta : e;
  });
}

// The loss of Backend.AbsoluteError.
extern "C" __global__ void __launch_bounds__(1024) absolute_error(float* loss, const float* y, const float* t, i64 n) {
  error_sum(loss, y, t, n, 1, [](double e) { return fabs(e); });
}

// The gradient of Backend.AbsoluteError, bit for bit. d may be y or t.
extern "C" __global__ void absolute_error_grad(float* d, const float* y, const float* t, i64 n) {
  map2(d, y, t, n, [](float a, float b) {
    float e = __fsub_rn(a, b);
    return e > 0.f ? 1.f : e < 0.f ? -1.f : e;
  });
}
