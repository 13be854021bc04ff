// Bias: adds a row to each row of a matrix, and sums over rows.

// y[i,j] += bias[j]: Backend.AddBias, bit for bit.
extern "C" __global__ void add_bias(float* y, const float* bias, i64 n, int columns) {
  if (columns % 4 == 0 && aligned16(y) && aligned16(bias)) {
    for (i64 i = global_thread(); i < n / 4; i += global_threads()) {
      float4 v = ((float4*)y)[i], b = ((const float4*)bias)[i % (columns / 4)];
      ((float4*)y)[i] = make_float4(__fadd_rn(v.x, b.x), __fadd_rn(v.y, b.y), __fadd_rn(v.z, b.z), __fadd_rn(v.w, b.w));
    }
    return;
  }
  for (i64 i = global_thread(); i < n; i += global_threads()) y[i] = __fadd_rn(y[i], bias[i % columns]);
}

// y[i,j] = relu(y[i,j] + bias[j]): Backend.AddBias and Backend.Relu, bit for bit, for
// products without an epilogue for both.
extern "C" __global__ void add_bias_relu(float* y, const float* bias, i64 n, int columns) {
  for (i64 i = global_thread(); i < n; i += global_threads()) {
    float v = __fadd_rn(y[i], bias[i % columns]);
    y[i] = v <= 0.f ? 0.f : v;
  }
}

// sum[j] += Σᵢ y[i,j]: Backend.SumRows, in another order. Each threadIdx.y sums every 32nd
// row, and these sums are added in order. A block of 32 by 32 threads has 32 columns.
extern "C" __global__ void __launch_bounds__(1024) sum_rows(float* sum, const float* y, int rows, int columns) {
  __shared__ float part[32][33];
  int column = blockIdx.x * 32 + threadIdx.x;
  float s = 0.f;
  if (column < columns)
    for (int i = threadIdx.y; i < rows; i += 32) s += y[(i64)i * columns + column];
  part[threadIdx.y][threadIdx.x] = s;
  __syncthreads();
  if (threadIdx.y == 0 && column < columns) {
    float total = 0.f;
    for (int i = 0; i < 32; i++) total += part[i][threadIdx.x];
    sum[column] += total;
  }
}
