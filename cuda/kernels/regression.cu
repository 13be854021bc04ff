// Regression: the squared error.

// The loss of Backend.SquaredError, summed in float64: loss[0] += Σᵢ (y[i]-t[i])²/2, by one
// block.
extern "C" __global__ void __launch_bounds__(1024) squared_error(float* loss, const float* y, const float* t, i64 n) {
  double sum = 0;
  for (i64 i = threadIdx.x; i < n; i += blockDim.x) {
    double d = (double)__fsub_rn(y[i], t[i]);
    sum += d * d;
  }
  double total = block_sum(sum);
  if (threadIdx.x == 0) loss[0] = __fadd_rn(loss[0], (float)(total / 2));
}

// The gradient of Backend.SquaredError, bit for bit: d = y - t. d may be y or t.
extern "C" __global__ void squared_error_grad(float* d, const float* y, const float* t, i64 n) {
  map2(d, y, t, n, [](float a, float b) { return __fsub_rn(a, b); });
}
