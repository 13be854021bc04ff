// Classification: softmax, cross-entropy, correct answers. Each warp has one row at a time.
// Exponentials and sums are float64.

__device__ __forceinline__ int row_of_warp() { return (blockIdx.x * blockDim.x + threadIdx.x) / 32; }
__device__ __forceinline__ int rows_at_once() { return gridDim.x * blockDim.x / 32; }
__device__ __forceinline__ int lane() { return threadIdx.x % 32; }

// softmax_row sets y to the softmax of x. y may be x, because each lane of the warp accesses
// only its own columns.
__device__ __forceinline__ void softmax_row(float* y, const float* x, int width) {
  float top = -infinity();
  for (int j = lane(); j < width; j += 32) top = fmaxf(top, x[j]);
  top = warp_max(top);
  double sum = 0;
  for (int j = lane(); j < width; j += 32) {
    double e = exp((double)(x[j] - top));
    sum += e;
    y[j] = (float)e;
  }
  float scale = (float)(1 / warp_sum(sum));
  for (int j = lane(); j < width; j += 32) y[j] = __fmul_rn(y[j], scale);
}

// Backend.Softmax.
extern "C" __global__ void softmax(float* y, const float* x, int rows, int width) {
  for (int i = row_of_warp(); i < rows; i += rows_at_once()) softmax_row(y + (i64)i * width, x + (i64)i * width, width);
}

// row_loss returns a row's loss if its label has probability p. It is finite even for 0.
__device__ __forceinline__ double row_loss(float p) {
  double q = (double)p;
  return -log(q > (double)smallest_normal || q != q ? q : (double)smallest_normal);
}

// block_sum returns the sum of v over the block in its first thread.
__device__ __forceinline__ double block_sum(double v) {
  __shared__ double part[32];
  v = warp_sum(v);
  if (lane() == 0) part[threadIdx.x / 32] = v;
  __syncthreads();
  double total = 0;
  if (threadIdx.x == 0)
    for (int i = 0; i < (int)blockDim.x / 32; i++) total += part[i];
  return total;
}

// The loss of Backend.CrossEntropy: loss[0] += Σᵢ row_loss(p[i, labels[i]]), by one block.
extern "C" __global__ void __launch_bounds__(1024) cross_entropy(float* loss, const float* p, const int* labels, int rows, int width) {
  double sum = 0;
  for (int i = threadIdx.x; i < rows; i += blockDim.x) sum += row_loss(p[(i64)i * width + labels[i]]);
  double total = block_sum(sum);
  if (threadIdx.x == 0) loss[0] = __fadd_rn(loss[0], (float)total);
}

// The gradient of Backend.CrossEntropy, bit for bit: d = p, minus 1 at the label. d may be p.
extern "C" __global__ void cross_entropy_grad(float* d, const float* p, const int* labels, int rows, int width) {
  i64 n = (i64)rows * width;
  for (i64 i = global_thread(); i < n; i += global_threads()) {
    float v = p[i];
    d[i] = i % width == labels[i / width] ? __fsub_rn(v, 1.f) : v;
  }
}

// The loss of Backend.SmoothedCrossEntropy, by one block: loss[0] += Σ q·row_loss(p), where q
// is on at the label and off elsewhere.
extern "C" __global__ void __launch_bounds__(1024) smoothed_cross_entropy(float* loss, const float* p, const int* labels, float on, float off, int rows, int width) {
  double sum = 0;
  i64 n = (i64)rows * width;
  for (i64 i = threadIdx.x; i < n; i += blockDim.x) sum += (double)(i % width == labels[i / width] ? on : off) * row_loss(p[i]);
  double total = block_sum(sum);
  if (threadIdx.x == 0) loss[0] = __fadd_rn(loss[0], (float)total);
}

// The gradient of Backend.SmoothedCrossEntropy, bit for bit: d = p - q. d may be p.
extern "C" __global__ void smoothed_cross_entropy_grad(float* d, const float* p, const int* labels, float on, float off, int rows, int width) {
  i64 n = (i64)rows * width;
  for (i64 i = global_thread(); i < n; i += global_threads()) d[i] = __fsub_rn(p[i], i % width == labels[i / width] ? on : off);
}

// best_column returns the first index of the largest element of a row, in every lane. A NaN
// in the first column wins, as in a loop from left to right. Any other NaN never wins.
__device__ __forceinline__ int best_column(const float* x, int width) {
  float most = -infinity();
  int at = width;
  for (int j = lane(); j < width; j += 32) {
    float v = x[j];
    if (v != v) v = j == 0 ? infinity() : -infinity();
    if (v > most || at == width) most = v, at = j;
  }
  for (int bits = 16; bits > 0; bits /= 2) {
    float v = __shfl_xor_sync(whole_warp, most, bits);
    int j = __shfl_xor_sync(whole_warp, at, bits);
    if (v > most || (v == most && j < at)) most = v, at = j;
  }
  return at;
}

// Backend.Correct, bit for bit, by one block: count[0] += the number of rows whose
// best_column is the label.
extern "C" __global__ void __launch_bounds__(1024) correct(float* count, const float* scores, const int* labels, int rows, int width) {
  double right = 0;
  for (int i = threadIdx.x / 32; i < rows; i += blockDim.x / 32) {
    int best = best_column(scores + (i64)i * width, width);
    if (lane() == 0 && best == labels[i]) right += 1;
  }
  double total = block_sum(right);
  if (threadIdx.x == 0) count[0] = __fadd_rn(count[0], (float)total);
}

// Softmax, Correct and CrossEntropy in one kernel: p = softmax(x), d is the gradient, and
// loss and count are as above, but overwritten rather than added to. count may be null. d and
// p may be x. losses has room for two numbers per row. Each block takes a ticket, and the
// last one sums what all have written. ticket is 0 before and after.
extern "C" __global__ void softmax_cross_entropy(float* p, float* d, float* loss, float* count, const float* x, const int* labels, int rows, int width, double* losses,
                                unsigned* ticket) {
  __shared__ unsigned mine;
  for (int i = row_of_warp(); i < rows; i += rows_at_once()) {
    float *probabilities = p + (i64)i * width, *gradient = d + (i64)i * width;
    int label = labels[i];
    softmax_row(probabilities, x + (i64)i * width, width);
    int best = best_column(probabilities, width);
    for (int j = lane(); j < width; j += 32) {
      float v = probabilities[j];
      if (j == label) {
        __stcg(&losses[2 * i], row_loss(v));
        __stcg(&losses[2 * i + 1], best == label ? 1. : 0.);
      }
      gradient[j] = j == label ? __fsub_rn(v, 1.f) : v;
    }
  }
  __threadfence();
  __syncthreads();
  if (threadIdx.x == 0) mine = atomicAdd(ticket, 1u);
  __syncthreads();
  if (mine != gridDim.x - 1) return;
  double sum = 0, right = 0;
  for (int i = threadIdx.x; i < rows; i += blockDim.x) sum += __ldcg(&losses[2 * i]), right += __ldcg(&losses[2 * i + 1]);
  double total = block_sum(sum);
  __syncthreads();
  double hits = block_sum(right);
  if (threadIdx.x > 0) return;
  loss[0] = (float)total;
  if (count) count[0] = (float)hits;
  atomicExch(ticket, 0u);
}
