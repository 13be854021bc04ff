// Stands in for libcublasLt: descriptors, three equal candidates for each product, and the
// products, which sum over k in order, in float32. Matrices are column-major. Factors are
// rounded to bfloat16 and TF32 like on a device.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <algorithm>
#include <array>
#include <memory>
#include <mutex>
#include <set>

#include "remote.h"

namespace {

enum { Success = 0, NotInitialized = 1, InvalidValue = 7, ExecutionFailed = 13, NotSupported = 15 };
enum { R32F = 0, R16BF = 14 };
enum { Compute32F = 68, Pedantic = 69, Fast16BF = 75, FastTF32 = 77 };
// Parts of epilogues.
enum { Default = 1, Relu = 2, Bias = 4, Gradient = 8, BiasGradient = 16, Aux = 128, BiasGradientA = 256, BiasGradientB = 512 };

struct Desc {
  int compute, scale, pointer_mode = 0, trans_a = 0, trans_b = 0;
  uint32_t epilogue = Default;
  char* bias = nullptr;
  unsigned char* aux = nullptr;
  int64_t aux_ld = 0, aux_stride = 0, bias_stride = 0;
  int bias_type = -1;
};
struct Layout {
  int type;
  int order = 0;
  uint64_t rows, columns;
  int64_t ld, stride = 0;
  int batch = 1;
};
struct Preference {
  size_t workspace = 0;
  uint32_t alignment[4] = {256, 256, 256, 256};  // of A, B, C and D, as the caller promises
};
struct Algo {
  uint64_t data[8];
};
struct Candidate {
  Algo algo;
  size_t workspace;
  int status;
  float waves;
  int reserved[4];
};
constexpr uint64_t algo_mark = 0x52544c54;
constexpr uint64_t widest = 16;  // bytes of the widest load

const rt::Remote& driver() { return rt::remote((const void*)driver); }

size_t size_of(int type) { return type == R16BF ? 2 : 4; }

float from_bf16(uint16_t h) {
  uint32_t u = (uint32_t)h << 16;
  float f;
  memcpy(&f, &u, 4);
  return f;
}
uint16_t to_bf16(float f) {
  uint32_t u;
  memcpy(&u, &f, 4);
  if (f != f) return 0x7fff;
  return (uint16_t)((u + 0x7fff + (u >> 16 & 1)) >> 16);
}
float to_tf32(float f) {
  uint32_t u;
  memcpy(&u, &f, 4);
  if ((u & 0x7f800000) == 0x7f800000) return f;
  u = (u + 0x0fff + (u >> 13 & 1)) & ~0x1fffu;
  memcpy(&f, &u, 4);
  return f;
}
float get(const char* p, int type, size_t i) { return type == R16BF ? from_bf16(((const uint16_t*)p)[i]) : ((const float*)p)[i]; }
void put(char* p, int type, size_t i, float v) {
  if (type == R16BF) ((uint16_t*)p)[i] = to_bf16(v);
  else ((float*)p)[i] = v;
}

// scatter permutes the bits in a column of a mask by an exclusive or, because cuBLASLt does not
// document their order.
constexpr size_t scatter = 85;  // less than 128, because columns are multiples of 128 bits

// A Product is a call with copies of everything it depends on.
struct Product {
  Desc desc;
  Layout la, lb, lc, ld;
  const char *a, *b, *c;
  char* d;
  float alpha, beta;
  const float *device_alpha, *device_beta;
  size_t m, n, k;
};

size_t extent(const Layout& l) {
  if (!l.rows || !l.columns) return 0;
  return ((l.batch - 1) * l.stride + (l.columns - 1) * l.ld + l.rows) * size_of(l.type);
}

// dense returns op(x) without gaps, rounded like the device's factors.
std::vector<float> dense(const char* x, const Layout& l, bool trans, int compute) {
  size_t rows = trans ? l.columns : l.rows, columns = trans ? l.rows : l.columns;
  std::vector<float> v(rows * columns);
  for (size_t j = 0; j < columns; j++)
    for (size_t i = 0; i < rows; i++) {
      float e = get(x, l.type, trans ? i * l.ld + j : j * l.ld + i);
      v[j * rows + i] = compute == FastTF32 ? to_tf32(e) : compute == Fast16BF ? from_bf16(to_bf16(e)) : e;
    }
  return v;
}

rt::Result fault(const char* what, const void* at, size_t bytes) {
  rt::say("cublasLtMatmul: %s at %p, %zu bytes, leaves the memory that was allocated", what, at, bytes);
  return rt::IllegalAddress;
}

rt::Result multiply(const Product& p, int batch) {
  const Desc& q = p.desc;
  size_t m = p.m, n = p.n, k = p.k;
  uint32_t e = q.epilogue;
  std::vector<float> a = dense(p.a + batch * p.la.stride * size_of(p.la.type), p.la, q.trans_a, q.compute);
  std::vector<float> b = dense(p.b + batch * p.lb.stride * size_of(p.lb.type), p.lb, q.trans_b, q.compute);
  const char* c = p.c + batch * p.lc.stride * size_of(p.lc.type);
  char* d = p.d + batch * p.ld.stride * size_of(p.ld.type);
  unsigned char* aux = q.aux + batch * q.aux_stride / 8;
  float alpha = p.device_alpha ? *p.device_alpha : p.alpha, beta = p.device_beta ? *p.device_beta : p.beta;
  int bias_type = q.bias_type < 0 ? p.ld.type : q.bias_type;
  char* bias = q.bias + batch * q.bias_stride * size_of(bias_type);
  std::vector<float> sum(m), row_sums(m);
  for (size_t j = 0; j < n; j++) {
    std::fill(sum.begin(), sum.end(), 0.f);
    for (size_t l = 0; l < k; l++) {
      float w = b[j * k + l];
      const float* column = &a[l * m];
      for (size_t i = 0; i < m; i++) sum[i] += column[i] * w;
    }
    for (size_t i = 0; i < m; i++) {
      float v = alpha * sum[i];
      if (beta != 0) v += beta * get(c, p.lc.type, j * p.lc.ld + i);
      if (e & Bias) v += get(bias, bias_type, i);
      size_t bit = j * q.aux_ld + (i ^ scatter);
      if (e & Gradient) {
        if (!(aux[bit / 8] >> (bit % 8) & 1)) v = 0;
      } else if (e & Relu) {
        if (e & Aux) aux[bit / 8] = (unsigned char)((aux[bit / 8] & ~(1 << bit % 8)) | (v > 0) << bit % 8);
        if (v <= 0) v = 0;
      }
      row_sums[i] += v;
      put(d, p.ld.type, j * p.ld.ld + i, v);
    }
  }
  if (e & BiasGradient)
    for (size_t i = 0; i < m; i++) put(bias, bias_type, i, row_sums[i]);
  if (e & BiasGradientA)
    for (size_t i = 0; i < m; i++) {
      float s = 0;
      for (size_t l = 0; l < k; l++) s += a[l * m + i];
      put(bias, bias_type, i, s);
    }
  if (e & BiasGradientB)
    for (size_t j = 0; j < n; j++) {
      float s = 0;
      for (size_t l = 0; l < k; l++) s += b[j * k + l];
      put(bias, bias_type, j, s);
    }
  return rt::Success;
}

rt::Result execute(const Product& p) {
  auto outside = [](const void* at, size_t bytes) { return bytes && !driver().within_device(at, bytes); };
  if (outside(p.a, extent(p.la))) return fault("A", p.a, extent(p.la));
  if (outside(p.b, extent(p.lb))) return fault("B", p.b, extent(p.lb));
  if (p.beta != 0 && outside(p.c, extent(p.lc))) return fault("C", p.c, extent(p.lc));
  if (outside(p.d, extent(p.ld))) return fault("D", p.d, extent(p.ld));
  const Desc& q = p.desc;
  if (q.epilogue & (Bias | BiasGradient | BiasGradientA | BiasGradientB)) {
    size_t bytes = (q.epilogue & BiasGradientB ? p.n : p.m) * size_of(q.bias_type < 0 ? p.ld.type : q.bias_type);
    if (outside(q.bias, bytes)) return fault("the bias", q.bias, bytes);
  }
  if (q.epilogue & (Aux | Gradient) && p.m && p.n) {
    size_t bytes = p.n * q.aux_ld / 8;
    if (outside(q.aux, bytes)) return fault("the mask", q.aux, bytes);
  }
  for (int i = 0; i < p.ld.batch; i++)
    if (rt::Result r = multiply(p, i)) return r;
  return rt::Success;
}

// typed reports whether the types match. D has the factors' type or a wider one. Only float32
// factors may be rounded.
bool typed(const Desc& q, const Layout& a, const Layout& b, const Layout& c, const Layout& d) {
  if (a.type != b.type || c.type != d.type || q.scale != R32F) return false;
  if (q.bias_type >= 0 && q.bias_type != d.type) return false;
  if (a.type == R16BF) return (d.type == R16BF || d.type == R32F) && (q.compute == Compute32F || q.compute == Pedantic);
  return a.type == R32F && d.type == R32F && (q.compute == Compute32F || q.compute == Pedantic || q.compute == Fast16BF || q.compute == FastTF32);
}

// supported reports whether there are candidates for this product.
bool supported(const Desc& q, const Layout& a, const Layout& b, const Layout& c, const Layout& d) {
  const char* plain = getenv("RINGTRAIN_EMULATOR_LT_PLAIN");
  if (plain && !strcmp(plain, "1") && q.epilogue != Default) return false;
  switch (q.epilogue) {
    case Default: case Relu: case Bias: case Relu | Bias: case Relu | Aux: case Relu | Aux | Bias: case Gradient | Aux: case Gradient | Aux | BiasGradient:
    case BiasGradientA: case BiasGradientB: break;
    default: return false;
  }
  for (const Layout* l : {&a, &b, &c, &d})
    if (l->order != 0) return false;
  bool needs_mask = q.epilogue & Aux;
  return typed(q, a, b, c, d) && (!needs_mask || (q.aux_ld % 128 == 0 && q.aux_ld >= (int64_t)d.rows));
}

bool fits(const Desc& q, const Layout& a, const Layout& b, const Layout& c, const Layout& d) {
  uint64_t m = q.trans_a ? a.columns : a.rows, k = q.trans_a ? a.rows : a.columns, n = q.trans_b ? b.rows : b.columns;
  return (q.trans_b ? b.columns : b.rows) == k && d.rows == m && d.columns == n && c.rows == m && c.columns == n && a.ld >= (int64_t)a.rows &&
         b.ld >= (int64_t)b.rows && c.ld >= (int64_t)c.rows && d.ld >= (int64_t)d.rows && a.batch == d.batch && b.batch == d.batch && c.batch == d.batch;
}

template <class T> int set(T& field, const void* v, size_t n) {
  if (n != sizeof field) return InvalidValue;
  return memcpy(&field, v, n), Success;
}

struct Handle {};

// version returns the emulated version of cuBLASLt, in the numbering of cublasLtGetVersion.
int version() {
  int major = 13, minor = 0, patch = 0;
  if (const char* as = getenv("RINGTRAIN_EMULATOR_LT")) sscanf(as, "%d.%d.%d", &major, &minor, &patch);
  return major * 10000 + minor * 100 + patch;
}

// kernels returns the number of kernels per product.
int kernels() {
  const char* wish = getenv("RINGTRAIN_EMULATOR_LT_KERNELS");
  return wish ? atoi(wish) : 1;
}

// none returns the heuristic's status if it has no candidate.
int none() {
  const char* wish = getenv("RINGTRAIN_EMULATOR_LT_STATUS");
  return wish ? atoi(wish) : NotSupported;
}

// refused reports whether cublasLtMatmul refuses a candidate that the heuristic returned.
bool refused(const Algo* algo) {
  const char* numbers = getenv("RINGTRAIN_EMULATOR_LT_REFUSES");
  return numbers && algo && strchr(numbers, '0' + (int)algo->data[1]);
}

}  // namespace

RT_API int cublasLtCreate(Handle** h) {
  if (!driver().found || driver().current_device() < 0) return NotInitialized;
  const char* driver_version = getenv("RINGTRAIN_EMULATOR_DRIVER");  // CUDA version, such as 12080
  if ((driver_version ? atoi(driver_version) : 13000) / 1000 < version() / 10000) return NotInitialized;
  return *h = new Handle, Success;
}
RT_API int cublasLtDestroy(Handle* h) { return delete h, Success; }
RT_API size_t cublasLtGetVersion() { return version(); }
RT_API size_t cublasLtGetCudartVersion() { return version() / 10000 * 1000; }

RT_API const char* cublasLtGetStatusName(int s) {
  switch (s) {
    case Success: return "CUBLAS_STATUS_SUCCESS";
    case NotInitialized: return "CUBLAS_STATUS_NOT_INITIALIZED";
    case InvalidValue: return "CUBLAS_STATUS_INVALID_VALUE";
    case ExecutionFailed: return "CUBLAS_STATUS_EXECUTION_FAILED";
    case NotSupported: return "CUBLAS_STATUS_NOT_SUPPORTED";
    default: return "CUBLAS_STATUS_UNKNOWN";
  }
}

RT_API int cublasLtMatmulDescCreate(Desc** d, int compute, int scale) {
  *d = new Desc{};
  return (*d)->compute = compute, (*d)->scale = scale, Success;
}
RT_API int cublasLtMatmulDescDestroy(Desc* d) { return delete d, Success; }
RT_API int cublasLtMatmulDescSetAttribute(Desc* d, int attribute, const void* v, size_t n) {
  switch (attribute) {
    case 0: return set(d->compute, v, n);
    case 1: return set(d->scale, v, n);
    case 2: return set(d->pointer_mode, v, n);
    case 3: return set(d->trans_a, v, n);
    case 4: return set(d->trans_b, v, n);
    case 7: return set(d->epilogue, v, n);
    case 8: return set(d->bias, v, n);
    case 10: return set(d->bias_stride, v, n);
    case 11: return set(d->aux, v, n);
    case 12: return set(d->aux_ld, v, n);
    case 13: return set(d->aux_stride, v, n);
    case 26: return set(d->bias_type, v, n);
    default: return InvalidValue;
  }
}

RT_API int cublasLtMatrixLayoutCreate(Layout** l, int type, uint64_t rows, uint64_t columns, int64_t ld) {
  *l = new Layout{};
  return (*l)->type = type, (*l)->rows = rows, (*l)->columns = columns, (*l)->ld = ld, Success;
}
RT_API int cublasLtMatrixLayoutDestroy(Layout* l) { return delete l, Success; }
RT_API int cublasLtMatrixLayoutSetAttribute(Layout* l, int attribute, const void* v, size_t n) {
  switch (attribute) {
    case 0: return set(l->type, v, n);
    case 1: return set(l->order, v, n);
    case 2: return set(l->rows, v, n);
    case 3: return set(l->columns, v, n);
    case 4: return set(l->ld, v, n);
    case 5: return set(l->batch, v, n);
    case 6: return set(l->stride, v, n);
    default: return InvalidValue;
  }
}

RT_API int cublasLtMatmulPreferenceCreate(Preference** p) { return *p = new Preference, Success; }
RT_API int cublasLtMatmulPreferenceDestroy(Preference* p) { return delete p, Success; }
RT_API int cublasLtMatmulPreferenceSetAttribute(Preference* p, int attribute, const void* v, size_t n) {
  if (attribute >= 5 && attribute <= 8) return set(p->alignment[attribute - 5], v, n);
  return attribute == 1 ? set(p->workspace, v, n) : Success;
}

RT_API int cublasLtMatmulAlgoGetHeuristic(Handle* h, Desc* q, Layout* a, Layout* b, Layout* c, Layout* d, Preference* p, int want, Candidate* out, int* got) {
  *got = 0;
  if (!h || want < 1 || !fits(*q, *a, *b, *c, *d)) return InvalidValue;
  if (!supported(*q, *a, *b, *c, *d) || kernels() < 1) return none();
  if (q->epilogue != Default && (q->trans_a ? a->rows : a->columns) == 1) return InvalidValue;  // and not NotSupported
  for (int i = 0; i < std::min(want, 3); i++) {
    size_t workspace = (size_t)i << 16;
    if (workspace > p->workspace) break;
    uint64_t a = p->alignment[0], b = p->alignment[1], d = std::min(p->alignment[2], p->alignment[3]);
    auto usable = [](const void* p) { return (uint64_t)(p && (uintptr_t)p % widest == 0); };
    out[i] = Candidate{{{algo_mark, (uint64_t)i, workspace, a, b, d, usable(q->bias), usable(q->aux)}}, workspace, Success, 1, {}};
    ++*got;
  }
  return Success;
}

// load loads the kernel of a product on its first use. It returns false in a capture, where that
// is forbidden.
static bool load(const Desc& q, const Layout& la, const Layout& ld, const Algo* algo, void* stream) {
  static std::mutex guard;
  static std::set<std::array<uint64_t, 7>> loaded;
  std::array<uint64_t, 7> key{algo ? algo->data[1] : 0, (uint64_t)q.compute, q.epilogue, (uint64_t)q.trans_a, (uint64_t)q.trans_b, (uint64_t)la.type, (uint64_t)ld.type};
  std::lock_guard<std::mutex> lock(guard);
  if (loaded.count(key)) return true;
  if (driver().capturing(stream)) return rt::say("cublasLtMatmul: a kernel is used for the first time in a capture"), false;
  loaded.insert(key);
  return true;
}

RT_API int cublasLtMatmul(Handle* h, Desc* q, const void* alpha, const void* a, Layout* la, const void* b, Layout* lb, const void* beta, const void* c,
                          Layout* lc, void* d, Layout* ld, const Algo* algo, void* workspace, size_t bytes, void* stream) {
  if (!h || !fits(*q, *la, *lb, *lc, *ld)) return InvalidValue;
  if (!supported(*q, *la, *lb, *lc, *ld)) return NotSupported;
  bool masked = q->epilogue & Aux, biased = q->epilogue & (Bias | BiasGradient | BiasGradientA | BiasGradientB);
  if ((masked && !q->aux) || (biased && !q->bias)) return InvalidValue;
  auto off = [=](const void* p, int i) { return algo && (uintptr_t)p % std::min<uint64_t>(widest, algo->data[i]); };
  if (off(a, 3) || off(b, 4) || off(d, 5) || (biased && (uintptr_t)q->bias % widest) || (masked && (uintptr_t)q->aux % widest)) {
    rt::say("cublasLtMatmul: an operand, its bias or its mask is not aligned as the algorithm needs it: MIN_ALIGNMENT of the preference, else 16 bytes");
    return NotSupported;
  }
  if (algo && ((biased && !algo->data[6]) || (masked && !algo->data[7]))) {
    rt::say("cublasLtMatmul: the bias or the mask was not set, or not aligned, when the algorithm was asked for");
    return NotSupported;
  }
  if (algo && (algo->data[0] != algo_mark || algo->data[2] > bytes)) return InvalidValue;
  if (bytes && algo && algo->data[2] && !driver().within_device(workspace, bytes)) return InvalidValue;
  if (refused(algo)) return NotSupported;
  if (!load(*q, *la, *ld, algo, stream)) return ExecutionFailed;
  auto p = std::make_shared<Product>();
  bool host = q->pointer_mode == 0;
  *p = Product{*q, *la, *lb, *lc, *ld, (const char*)a, (const char*)b, (const char*)c, (char*)d, host ? *(const float*)alpha : 0,
               host ? *(const float*)beta : 1, host ? nullptr : (const float*)alpha, host ? nullptr : (const float*)beta,
               ld->rows, ld->columns, q->trans_a ? la->rows : la->columns};
  rt::Op op{"cublasLtMatmul", [=] { return execute(*p); }};
  for (int i = kernels(); i > 1; i--) {
    rt::Op before{"cublasLtMatmul, its first part", [] { return rt::Success; }};
    if (driver().submit(stream, &before)) return ExecutionFailed;
  }
  return driver().submit(stream, &op) ? ExecutionFailed : Success;
}

// rt_matmul is cublasLtMatmul with C as D and no workspace, for callers that cannot pass so many
// arguments.
RT_API int rt_matmul(Handle* h, Desc* q, const void* alpha, const void* a, Layout* la, const void* b, Layout* lb, const void* beta, void* d, Layout* ld,
                     const Algo* algo, void* stream) {
  return cublasLtMatmul(h, q, alpha, a, la, b, lb, beta, d, ld, d, ld, algo, nullptr, 0, stream);
}
