// bfloat16, for products whose operands have 16 bits.

__device__ __forceinline__ unsigned short bf16_of(float v) {
  unsigned bits = __float_as_uint(v);
  return v != v ? 0x7fff : (unsigned short)((bits + 0x7fffu + (bits >> 16 & 1)) >> 16);
}

// y = x rounded to nearest, ties to even. A NaN stays a NaN.
extern "C" __global__ void to_bf16(unsigned short* y, const float* x, i64 n) {
  i64 fours = aligned16(y) && aligned16(x) ? n / 4 : 0;
  for (i64 i = global_thread(); i < fours; i += global_threads()) {
    float4 v = ((const float4*)x)[i];
    ushort4 r;
    r.x = bf16_of(v.x), r.y = bf16_of(v.y), r.z = bf16_of(v.z), r.w = bf16_of(v.w);
    ((ushort4*)y)[i] = r;
  }
  for (i64 i = 4 * fours + global_thread(); i < n; i += global_threads()) y[i] = bf16_of(x[i]);
}

// y = x, which is exact.
extern "C" __global__ void from_bf16(float* y, const unsigned short* x, i64 n) {
  for (i64 i = global_thread(); i < n; i += global_threads()) y[i] = __uint_as_float((unsigned)x[i] << 16);
}
