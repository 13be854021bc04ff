// bfloat16, for products whose operands have 16 bits.

// y = x rounded to the nearest, ties to even; a NaN stays one.
extern "C" __global__ void to_bf16(unsigned short* y, const float* x, i64 n) {
  for (i64 i = global_thread(); i < n; i += global_threads()) {
    float v = x[i];
    unsigned bits = __float_as_uint(v);
    y[i] = v != v ? 0x7fff : (unsigned short)((bits + 0x7fffu + (bits >> 16 & 1)) >> 16);
  }
}

// y = x, which is exact.
extern "C" __global__ void from_bf16(float* y, const unsigned short* x, i64 n) {
  for (i64 i = global_thread(); i < n; i += global_threads()) y[i] = __uint_as_float((unsigned)x[i] << 16);
}
