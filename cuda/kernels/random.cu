// Random numbers: nn.Philox, in which each draw is a function of its position.

struct Words {
  unsigned x, y, z, w;
};

__device__ __forceinline__ Words philox(unsigned k0, unsigned k1, Words c) {
#pragma unroll
  for (int round = 0; round < 10; round++) {
    unsigned h0 = __umulhi(0xD2511F53u, c.x), l0 = 0xD2511F53u * c.x;
    unsigned h1 = __umulhi(0xCD9E8D57u, c.z), l1 = 0xCD9E8D57u * c.z;
    c = Words{h1 ^ c.y ^ k0, l1, h0 ^ c.w ^ k1, l0};
    k0 += 0x9E3779B9u;
    k1 += 0xBB67AE85u;
  }
  return c;
}

// Random is nn.Stream in device memory. tick advances it.
struct Random {
  u64 seed, step;
  i64 first, stride;
};

// draw is nn.Stream.Draw.
__device__ __forceinline__ Words draw(const Random& r, unsigned layer, i64 row, unsigned block) {
  u64 global = (u64)(r.first + row * (r.stride == 0 ? 1 : r.stride));
  Words counter = {block, (unsigned)global, (layer & 0xFFFFu) | (unsigned)(r.step >> 32) << 16, (unsigned)r.step};
  return philox((unsigned)r.seed, (unsigned)(r.seed >> 32), counter);
}

// Backend.Dropout on rows of the given width, bit for bit. least is ceil(rate·2²⁴): an
// element stays if its 24 random bits are at least this. scale is 1/(1-rate) in float32. y
// may be x.
extern "C" __global__ void dropout(float* y, const float* x, i64 rows, int width, unsigned least, float scale, unsigned layer, const Random* random) {
  Random r = *random;
  int fours = (width + 3) / 4;
  bool whole = width % 4 == 0 && aligned16(y) && aligned16(x);
  for (i64 q = global_thread(); q < rows * fours; q += global_threads()) {
    i64 row = q / fours;
    int block = (int)(q % fours);
    Words w = draw(r, layer, row, (unsigned)block);
    bool stays[4] = {w.x >> 8 >= least, w.y >> 8 >= least, w.z >> 8 >= least, w.w >> 8 >= least};
    if (whole) {
      float4 v = ((const float4*)x)[q];
      ((float4*)y)[q] = make_float4(stays[0] ? __fmul_rn(v.x, scale) : 0.f, stays[1] ? __fmul_rn(v.y, scale) : 0.f,
                                    stays[2] ? __fmul_rn(v.z, scale) : 0.f, stays[3] ? __fmul_rn(v.w, scale) : 0.f);
      continue;
    }
    i64 at = row * width + 4 * block;
#pragma unroll
    for (int j = 0; j < 4; j++)
      if (4 * block + j < width) y[at + j] = stays[j] ? __fmul_rn(x[at + j], scale) : 0.f;
  }
}
