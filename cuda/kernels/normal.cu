// The float32 functions exp and normal of nn/cpu, bit for bit: nothing but rounded products,
// sums and quotients.

__device__ __forceinline__ float power_of_two(int k) { return __uint_as_float((unsigned)(k + 127) << 23); }

// horner returns p·x + c.
__device__ __forceinline__ float horner(float p, float x, float c) { return __fadd_rn(__fmul_rn(p, x), c); }

// exp32 is nn/cpu's exp.
__device__ __forceinline__ float exp32(float x) {
  if (x < -87.33654f) return 0.f;
  if (x > 88.72283f) return infinity();
  const float round_to = 12582912.f;  // 1.5·2^23
  float shifted = __fadd_rn(__fmul_rn(x, 1.44269504089f), round_to);
  float n = __fsub_rn(shifted, round_to);
  float r = __fsub_rn(x, __fmul_rn(n, .693359375f));
  r = __fsub_rn(r, __fmul_rn(n, -2.12194440e-4f));
  float p = 1.9875691500e-4f;
  p = horner(p, r, 1.3981999507e-3f);
  p = horner(p, r, 8.3334519073e-3f);
  p = horner(p, r, 4.1665795894e-2f);
  p = horner(p, r, 1.6666665459e-1f);
  p = horner(p, r, 5.0000001201e-1f);
  p = __fadd_rn(horner(p, __fmul_rn(r, r), r), 1.f);
  int k = (int)(__float_as_uint(shifted) - __float_as_uint(round_to));
  return __fmul_rn(__fmul_rn(p, power_of_two(k >> 1)), power_of_two(k - (k >> 1)));
}

// normal_at is nn/cpu's normal: Φ(x), and exp(-x²/2) in e.
__device__ __forceinline__ float normal_at(float x, float& e) {
  e = exp32(__fmul_rn(__fmul_rn(-.5f, x), x));
  float t = __fdiv_rn(1.f, __fadd_rn(1.f, __fmul_rn(.27f, x < 0.f ? -x : x)));
  float p = 2.910702821e-2f;
  p = horner(p, t, -1.272421198e-1f);
  p = horner(p, t, 1.714446873e-1f);
  p = horner(p, t, -7.12139169e-2f);
  p = horner(p, t, 1.092772064e-1f);
  p = horner(p, t, 7.140606258e-2f);
  p = horner(p, t, 1.01980367e-1f);
  p = horner(p, t, 1.075186033e-1f);
  p = horner(p, t, 1.077220931e-1f);
  float tail = __fmul_rn(__fmul_rn(p, t), e);
  return x < 0.f ? tail : __fsub_rn(1.f, tail);
}
