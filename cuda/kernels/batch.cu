// A step's batch, hyper-parameters and random numbers, all from device memory, so that a
// recorded step needs nothing from the host.

// Progress is a training's position, in device memory. tick advances it.
struct Progress {
  u64 step;   // steps done
  i64 first;  // position of the step's first row in the epoch's order
};

// y[i,j] = data[order[first + i], j] / divisor, and labels[i] = classes[order[first + i]]
// unless labels is null. With divisor 255 it equals trainer/data's Images.Batch, bit for
// bit.
extern "C" __global__ void gather_bytes(float* y, const unsigned char* data, int* labels, const int* classes, const int* order,
                             const Progress* progress, int rows, int width, float divisor) {
  i64 first = progress ? progress->first : 0;
  if (labels)
    for (i64 i = global_thread(); i < rows; i += global_threads()) labels[i] = classes[order[first + i]];
  if (width % 4 == 0 && aligned16(y) && ((u64)data & 3) == 0) {
    int fours = width / 4;
    for (i64 q = global_thread(); q < (i64)rows * fours; q += global_threads()) {
      uchar4 v = ((const uchar4*)data)[(i64)order[first + q / fours] * fours + q % fours];
      ((float4*)y)[q] = make_float4(__fdiv_rn(v.x, divisor), __fdiv_rn(v.y, divisor), __fdiv_rn(v.z, divisor), __fdiv_rn(v.w, divisor));
    }
    return;
  }
  for (i64 e = global_thread(); e < (i64)rows * width; e += global_threads())
    y[e] = __fdiv_rn(data[(i64)order[first + e / width] * width + e % width], divisor);
}

// y[i,j] = data[order[first + i], j]. Also for int32, whose bits are copied.
extern "C" __global__ void gather_words(unsigned* y, const unsigned* data, const int* order, const Progress* progress, int rows, int width) {
  i64 first = progress ? progress->first : 0;
  for (i64 e = global_thread(); e < (i64)rows * width; e += global_threads()) y[e] = data[(i64)order[first + e / width] * width + e % width];
}

// The end of a step, by one block. It writes the loss to element step mod slots of losses,
// which may be host memory, and advances progress by one step and advance rows. Then it
// prepares the next step: it copies the hyper-parameters from row step mod table_rows of
// the table, sets random->step, and ends what commit has decided. Any pointer but progress may
// be null.
extern "C" __global__ void __launch_bounds__(1024) tick(Progress* progress, i64 advance, float* losses, int slots, const float* loss, float* hyper, const float* table,
                     int table_rows, Random* random, int* stop) {
  u64 step = progress->step;
  __syncthreads();
  u64 next = step + 1;
  if (hyper && threadIdx.x < RT_HYPER_LEN) hyper[threadIdx.x] = table[next % table_rows * RT_HYPER_LEN + threadIdx.x];
  if (threadIdx.x > 0) return;
  if (losses) losses[step % slots] = loss[0];
  if (random) random->step = next;
  if (stop) *stop = 0;
  progress->step = next;
  progress->first += advance;
}
