// Elementwise operations. Equal to nn/cpu bit for bit.

// Backend.Zero, for either type.
extern "C" __global__ void zero(float* y, i64 n) {
  for (i64 i = global_thread(); i < n; i += global_threads()) y[i] = 0.f;
}

// y = x: Backend.Copy between buffers.
extern "C" __global__ void copy(float* y, const float* x, i64 n) {
  map(y, x, n, [](float v) { return v; });
}

// y = a·y: Backend.Scale.
extern "C" __global__ void scale(float* y, float a, i64 n) {
  map(y, y, n, [=](float v) { return __fmul_rn(a, v); });
}

// y = a·x + y: Backend.Axpy.
extern "C" __global__ void axpy(float* y, float a, const float* x, i64 n) {
  map2(y, x, y, n, [=](float v, float w) { return __fadd_rn(w, __fmul_rn(a, v)); });
}

// y = scale·x + shift: Backend.Rescale.
extern "C" __global__ void rescale(float* y, const float* x, float scale, float shift, i64 n) {
  map(y, x, n, [=](float v) { return __fadd_rn(__fmul_rn(scale, v), shift); });
}

// y = 0 where x <= 0, and x elsewhere, also where x is NaN: Backend.Relu.
extern "C" __global__ void relu(float* y, const float* x, i64 n) {
  map(y, x, n, [](float v) { return v <= 0.f ? 0.f : v; });
}

// dx = 0 where y <= 0, scale·dy elsewhere: Backend.ReluGrad.
extern "C" __global__ void relu_grad(float* dx, const float* dy, const float* y, float scale, i64 n) {
  map2(dx, dy, y, n, [=](float d, float v) { return v <= 0.f ? 0.f : __fmul_rn(d, scale); });
}
