// Stands in for libcudnn: descriptors, a few algorithms for each pass, and the convolutions,
// computed directly. Algorithms that are not deterministic give different bits each time, and
// transforms have larger errors. Like cuDNN it opens its parts by name, and aborts the process
// if that fails.
#include "cudnn.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <algorithm>
#include <atomic>
#include <set>

#include "remote.h"

namespace {

using dnn::BadParam;
using dnn::NotSupported;
constexpr int Success = 0;
enum { NCHW = 0, Float = 0, CrossCorrelation = 1, DefaultMath = 0, FmaMath = 3 };
enum Pass { Forward, Weights, Input };
constexpr size_t widest = 16;  // bytes of the widest load

const rt::Remote& driver() { return rt::remote((const void*)driver); }

// refuses reports whether RINGTRAIN_EMULATOR_CUDNN_REFUSES asks for a failure of this kind.
bool refuses(const char* kind) {
  const char* wish = getenv("RINGTRAIN_EMULATOR_CUDNN_REFUSES");
  return wish && !strcmp(wish, kind);
}

// need_parts is called by every function.
void need_parts() {
  static const bool there = [] {
    for (const char* const* part = dnn::parts; *part; part++)
      if (!dlopen(*part, RTLD_NOW | RTLD_LOCAL)) {
        fprintf(stderr, "Could not load library %s. Error: %s\n", *part, dlerror());
        abort();
      }
    return true;
  }();
  (void)there;
}

template <class F> F* symbol(const char* name) {
  static void* h = dlopen((rt::directory((const void*)need_parts) + "/libcuda.so.1").c_str(), RTLD_NOW | RTLD_LOCAL);
  return (F*)dlsym(h, name);
}

// Every object that has a handle begins with its Kind, which is Gone after its destruction.
enum Kind : int { Gone, AHandle = 0x68646c31, ATensor, AFilter, AConvolution };

struct Handle {
  Kind kind = AHandle;
  void* stream = nullptr;
  std::vector<void*> memory;  // device memory of loaded kernels
  std::set<int> loaded;
};
struct Tensor {
  Kind kind = ATensor;
  int n = 0, c = 0, h = 0, w = 0;
  size_t elements() const { return (size_t)n * c * h * w; }
};
struct Filter {
  Kind kind = AFilter;
  int k = 0, c = 0, h = 0, w = 0;
  size_t elements() const { return (size_t)k * c * h * w; }
};
struct Convolution {
  Kind kind = AConvolution;
  int pad_h = 0, pad_w = 0, stride_h = 0, stride_w = 0, dilation_h = 0, dilation_w = 0, mode = -1, type = -1, math = DefaultMath;
};
struct Perf {
  int algorithm, status;
  float time;
  size_t memory;
  int determinism, math, reserved[3];
};
static_assert(sizeof(Perf) == 48);

template <class T> bool is(const T* t) { return t && t->kind == T().kind; }

template <class T> int create(T** out) { return need_parts(), *out = new T, Success; }
template <class T> int destroy(T* t) {
  if (!is(t)) return BadParam;
  return t->kind = Gone, delete t, Success;
}

// An Algorithm is one way to compute a pass.
struct Algorithm {
  int number;
  bool deterministic, transform, unit_stride;
  size_t workspace;
};

// algorithms returns the algorithms of a pass, in the heuristic's order.
const std::vector<Algorithm>& algorithms(Pass p) {
  constexpr size_t huge = (size_t)1 << 40;
  static const std::vector<Algorithm> of[] = {
      {{4, true, true, false, 1 << 16}, {6, true, true, true, 1 << 14}, {2, true, false, false, huge}, {1, true, false, false, 1 << 12}, {0, true, false, false, 0}},
      {{0, false, false, false, 0}, {3, false, false, false, 1 << 12}, {4, true, true, true, 1 << 14}, {1, true, false, false, 1 << 13}},
      {{0, false, false, false, 0}, {4, true, true, true, 1 << 14}, {1, true, false, false, 1 << 13}},
  };
  return of[p];
}

const Algorithm* find(Pass p, int number) {
  for (const Algorithm& a : algorithms(p))
    if (a.number == number) return &a;
  return nullptr;
}

// A Shape combines the contents of the descriptors.
struct Shape {
  Tensor x, y;
  Filter w;
  Convolution c;
};

// shape fills a Shape, and returns a status if the descriptors do not match.
int shape(const Tensor* x, const Filter* w, const Convolution* c, const Tensor* y, Shape* out) {
  if (!is(x) || !is(w) || !is(c) || !is(y)) return rt::say("cuDNN: a descriptor is none, or of another kind"), BadParam;
  if (c->mode != CrossCorrelation || c->type != Float || c->dilation_h != 1 || c->dilation_w != 1) return NotSupported;
  int h = (x->h + 2 * c->pad_h - w->h) / c->stride_h + 1, wide = (x->w + 2 * c->pad_w - w->w) / c->stride_w + 1;
  if (x->c != w->c || y->n != x->n || y->c != w->k || y->h != h || y->w != wide)
    return rt::say("cuDNN: the descriptors do not fit each other"), BadParam;
  *out = Shape{*x, *y, *w, *c};
  return Success;
}

int offer(Handle* h, Pass p, const Shape& s, int want, int* got, Perf* out) {
  *got = 0;
  if (!is(h) || want < 1) return BadParam;
  if (refuses("heuristic")) return NotSupported;
  for (const Algorithm& a : algorithms(p))
    for (int math : {s.c.math, (int)FmaMath}) {  // each number appears once per math type
      int status = a.unit_stride && s.c.stride_h != 1 ? NotSupported : Success;
      if (*got < want) out[(*got)++] = Perf{a.number, status, -1, a.workspace, a.deterministic, math, {}};
      if (s.c.math == FmaMath) break;
    }
  return Success;
}

int workspace(Handle* h, Pass p, int number, size_t* bytes) {
  const Algorithm* a = find(p, number);
  if (!is(h) || !a) return BadParam;
  return *bytes = a->workspace, Success;
}

float to_tf32(float f) {
  uint32_t u;
  memcpy(&u, &f, 4);
  if ((u & 0x7f800000) == 0x7f800000) return f;
  u = (u + 0x0fff + (u >> 13 & 1)) & ~0x1fffu;
  memcpy(&f, &u, 4);
  return f;
}

// A Call is a convolution with everything it depends on.
struct Call {
  Pass pass;
  Shape s;
  Algorithm a;
  const float *x, *w, *y;
  float* out;
  float alpha, beta;
  char* scratch;
  bool backwards;  // sums run in the opposite order
};

// each calls f for every product of a convolution: elements of x, w and y.
template <class F> void each(const Shape& s, F f) {
  for (int n = 0; n < s.y.n; n++)
    for (int k = 0; k < s.y.c; k++)
      for (int c = 0; c < s.x.c; c++)
        for (int u = 0; u < s.w.h; u++)
          for (int v = 0; v < s.w.w; v++)
            for (int i = 0; i < s.y.h; i++) {
              int row = i * s.c.stride_h - s.c.pad_h + u;
              if (row < 0 || row >= s.x.h) continue;
              for (int j = 0; j < s.y.w; j++) {
                int column = j * s.c.stride_w - s.c.pad_w + v;
                if (column < 0 || column >= s.x.w) continue;
                f((((size_t)n * s.x.c + c) * s.x.h + row) * s.x.w + column, (((size_t)k * s.w.c + c) * s.w.h + u) * s.w.w + v,
                  (((size_t)n * s.y.c + k) * s.y.h + i) * s.y.w + j);
              }
            }
}

std::vector<float> factors(const float* from, size_t n, const Call& q) {
  std::vector<float> v(from, from + n);
  for (float& f : v) {
    if (q.s.c.math != FmaMath) f = to_tf32(f);
    if (q.a.transform) f = to_tf32(to_tf32(f) * 1.0007f);  // an error as large as a transform's
  }
  return v;
}

rt::Result execute(const Call& q) {
  size_t sizes[] = {q.s.x.elements(), q.s.w.elements(), q.s.y.elements()};
  const float* at[] = {q.x, q.w, q.y};
  for (int i = 0; i < 3; i++)
    if (!driver().within_device(at[i], sizes[i] * sizeof(float))) {
      rt::say("cuDNN: operand %c at %p, %zu elements, leaves the memory that was allocated", "xwy"[i], (const void*)at[i], sizes[i]);
      return rt::IllegalAddress;
    }
  if (q.a.workspace) {
    if (!driver().within_device(q.scratch, q.a.workspace)) return rt::say("cuDNN: the workspace is gone"), rt::IllegalAddress;
    for (size_t i = 0; i + 4 <= q.a.workspace; i += 4) memcpy(q.scratch + i, &rt::poison, 4);
  }
  size_t n = q.pass == Forward ? sizes[2] : q.pass == Weights ? sizes[1] : sizes[0];
  std::vector<float> x, w, y, sum(n), late(n);
  if (q.pass != Input) x = factors(q.x, sizes[0], q);
  if (q.pass != Weights) w = factors(q.w, sizes[1], q);
  if (q.pass != Forward) y = factors(q.y, sizes[2], q);
  // Two sums for each element, by the parity of the factor's index, so that algorithms round
  // differently.
  auto add = [&](size_t to, size_t from, float v) { (((from & 1) != 0) == q.backwards ? sum : late)[to] += v; };
  if (q.pass == Forward) each(q.s, [&](size_t i, size_t j, size_t k) { add(k, j, x[i] * w[j]); });
  if (q.pass == Weights) each(q.s, [&](size_t i, size_t j, size_t k) { add(j, k, x[i] * y[k]); });
  if (q.pass == Input) each(q.s, [&](size_t i, size_t j, size_t k) { add(i, j, w[j] * y[k]); });
  for (size_t i = 0; i < n; i++) {
    float both = q.a.deterministic && q.a.number % 2 ? sum[i] + late[i] : late[i] * .75f + sum[i] + late[i] * .25f;
    float v = q.alpha * both;
    if (q.beta != 0) v += q.beta * q.out[i];
    q.out[i] = v;
  }
  return rt::Success;
}

// load allocates memory for the kernels of an algorithm on its first use, which fails in a
// capture.
int load(Handle* h, Pass p, int number) {
  int key = p * 16 + number;
  if (h->loaded.count(key)) return Success;
  void* at = nullptr;
  if (symbol<int(void**, size_t)>("cuMemAlloc_v2")(&at, 256)) {
    rt::say("cuDNN: algorithm %d is used for the first time in a capture", number);
    return dnn::ExecutionFailed;
  }
  h->memory.push_back(at);
  h->loaded.insert(key);
  return Success;
}

int run(Handle* h, Pass p, const Shape& s, int number, const void* alpha, const void* x, const void* w, const void* y, void* scratch, size_t bytes,
        const void* beta) {
  const Algorithm* a = find(p, number);
  if (!is(h) || !a || !alpha || !beta || !x || !w || !y) return BadParam;
  if (bytes < a->workspace || (a->workspace && !driver().within_device(scratch, bytes)))
    return rt::say("cuDNN: algorithm %d needs %zu bytes of workspace", number, a->workspace), BadParam;
  if (refuses("run") || (((uintptr_t)x | (uintptr_t)w | (uintptr_t)y) % widest)) return NotSupported;
  int capturing = 0;
  symbol<int(void*, int*)>("cuStreamIsCapturing")(h->stream, &capturing);
  if (capturing && refuses("capture") && number == 1) return NotSupported;
  if (int r = load(h, p, number)) return r;
  static std::atomic<unsigned> calls;
  auto q = std::make_shared<Call>();
  void* out = const_cast<void*>(p == Forward ? y : p == Weights ? w : x);
  *q = Call{p, s, *a, (const float*)x, (const float*)w, (const float*)y, (float*)out, *(const float*)alpha, *(const float*)beta, (char*)scratch,
            !a->deterministic && calls++ % 2};
  rt::Op op{"cudnnConvolution", [=] { return execute(*q); }};
  return driver().submit(h->stream, &op) ? dnn::ExecutionFailed : Success;
}

}  // namespace

RT_API size_t cudnnGetVersion() {
  need_parts();
  int v[3] = {};
  const char* as = getenv("RINGTRAIN_EMULATOR_CUDNN");
  if (!as || sscanf(as, "%d.%d.%d", &v[0], &v[1], &v[2]) < 1) return dnn::version;
  return v[0] < 9 ? v[0] * 1000 + v[1] * 100 + v[2] : v[0] * 10000 + v[1] * 100 + v[2];
}
RT_API size_t cudnnGetCudartVersion() {
  need_parts();
  return refuses("driver") ? 14000 : 12040;
}
RT_API const char* cudnnGetErrorString(int s) {
  const std::pair<int, const char*> all[] = {{Success, "SUCCESS"}, {dnn::NotInitialized, "NOT_INITIALIZED"}, {BadParam, "BAD_PARAM"},
                                             {dnn::InternalError, "INTERNAL_ERROR"}, {dnn::ExecutionFailed, "EXECUTION_FAILED"}, {NotSupported, "NOT_SUPPORTED"}};
  static thread_local char name[64];
  for (auto& one : all)
    if (one.first == s) return snprintf(name, sizeof name, "CUDNN_STATUS_%s", one.second), name;
  return "CUDNN_UNKNOWN_STATUS";
}

RT_API int cudnnCreate(Handle** h) {
  need_parts();
  if (!driver().found || driver().current_device() < 0 || refuses("create")) return dnn::NotInitialized;
  void* at = nullptr;
  if (symbol<int(void**, size_t)>("cuMemAlloc_v2")(&at, 4096)) return dnn::NotInitialized;
  create(h);
  (*h)->memory.push_back(at);
  return Success;
}
RT_API int cudnnDestroy(Handle* h) {
  if (!is(h)) return BadParam;
  for (void* at : h->memory)
    if (symbol<int(void*)>("cuMemFree_v2")(at)) return dnn::InternalError;
  return destroy(h);
}
RT_API int cudnnSetStream(Handle* h, void* stream) {
  if (!is(h)) return BadParam;
  return h->stream = stream, Success;
}

RT_API int cudnnCreateTensorDescriptor(Tensor** t) { return create(t); }
RT_API int cudnnDestroyTensorDescriptor(Tensor* t) { return destroy(t); }
RT_API int cudnnSetTensor4dDescriptor(Tensor* t, int format, int type, int n, int c, int h, int w) {
  if (!is(t) || n < 1 || c < 1 || h < 1 || w < 1) return BadParam;
  if (format != NCHW || type != Float || (double)n * c * h * w >= 1u << 31) return NotSupported;
  return t->n = n, t->c = c, t->h = h, t->w = w, Success;
}
RT_API int cudnnCreateFilterDescriptor(Filter** f) { return create(f); }
RT_API int cudnnDestroyFilterDescriptor(Filter* f) { return destroy(f); }
RT_API int cudnnSetFilter4dDescriptor(Filter* f, int type, int format, int k, int c, int h, int w) {
  if (!is(f) || k < 1 || c < 1 || h < 1 || w < 1) return BadParam;
  if (format != NCHW || type != Float) return NotSupported;
  return f->k = k, f->c = c, f->h = h, f->w = w, Success;
}
RT_API int cudnnCreateConvolutionDescriptor(Convolution** c) { return create(c); }
RT_API int cudnnDestroyConvolutionDescriptor(Convolution* c) { return destroy(c); }
RT_API int cudnnSetConvolution2dDescriptor(Convolution* c, int pad_h, int pad_w, int stride_h, int stride_w, int dilation_h, int dilation_w, int mode, int type) {
  if (!is(c) || pad_h < 0 || pad_w < 0 || stride_h < 1 || stride_w < 1 || dilation_h < 1 || dilation_w < 1) return BadParam;
  int math = c->math;
  *c = Convolution{AConvolution, pad_h, pad_w, stride_h, stride_w, dilation_h, dilation_w, mode, type, math};
  return Success;
}
RT_API int cudnnSetConvolutionMathType(Convolution* c, int math) {
  if (!is(c) || math < DefaultMath || math > FmaMath) return BadParam;
  return c->math = math, Success;
}

RT_API int cudnnGetConvolutionForwardAlgorithm_v7(Handle* h, Tensor* x, Filter* w, Convolution* c, Tensor* y, int want, int* got, Perf* out) {
  Shape s;
  if (int r = shape(x, w, c, y, &s)) return r;
  return offer(h, Forward, s, want, got, out);
}
RT_API int cudnnGetConvolutionBackwardFilterAlgorithm_v7(Handle* h, Tensor* x, Tensor* y, Convolution* c, Filter* w, int want, int* got, Perf* out) {
  Shape s;
  if (int r = shape(x, w, c, y, &s)) return r;
  return offer(h, Weights, s, want, got, out);
}
RT_API int cudnnGetConvolutionBackwardDataAlgorithm_v7(Handle* h, Filter* w, Tensor* y, Convolution* c, Tensor* x, int want, int* got, Perf* out) {
  Shape s;
  if (int r = shape(x, w, c, y, &s)) return r;
  return offer(h, Input, s, want, got, out);
}

RT_API int cudnnGetConvolutionForwardWorkspaceSize(Handle* h, Tensor* x, Filter* w, Convolution* c, Tensor* y, int number, size_t* bytes) {
  Shape s;
  if (int r = shape(x, w, c, y, &s)) return r;
  return workspace(h, Forward, number, bytes);
}
RT_API int cudnnGetConvolutionBackwardFilterWorkspaceSize(Handle* h, Tensor* x, Tensor* y, Convolution* c, Filter* w, int number, size_t* bytes) {
  Shape s;
  if (int r = shape(x, w, c, y, &s)) return r;
  return workspace(h, Weights, number, bytes);
}
RT_API int cudnnGetConvolutionBackwardDataWorkspaceSize(Handle* h, Filter* w, Tensor* y, Convolution* c, Tensor* x, int number, size_t* bytes) {
  Shape s;
  if (int r = shape(x, w, c, y, &s)) return r;
  return workspace(h, Input, number, bytes);
}

RT_API int cudnnConvolutionForward(Handle* h, const void* alpha, Tensor* x, const void* xp, Filter* w, const void* wp, Convolution* c, int number,
                                   void* scratch, size_t bytes, const void* beta, Tensor* y, void* yp) {
  Shape s;
  if (int r = shape(x, w, c, y, &s)) return r;
  return run(h, Forward, s, number, alpha, xp, wp, yp, scratch, bytes, beta);
}
RT_API int cudnnConvolutionBackwardFilter(Handle* h, const void* alpha, Tensor* x, const void* xp, Tensor* y, const void* yp, Convolution* c, int number,
                                          void* scratch, size_t bytes, const void* beta, Filter* w, void* wp) {
  Shape s;
  if (int r = shape(x, w, c, y, &s)) return r;
  return run(h, Weights, s, number, alpha, xp, wp, yp, scratch, bytes, beta);
}
RT_API int cudnnConvolutionBackwardData(Handle* h, const void* alpha, Filter* w, const void* wp, Tensor* y, const void* yp, Convolution* c, int number,
                                        void* scratch, size_t bytes, const void* beta, Tensor* x, void* xp) {
  Shape s;
  if (int r = shape(x, w, c, y, &s)) return r;
  return run(h, Input, s, number, alpha, xp, wp, yp, scratch, bytes, beta);
}

// cudnnAddTensor adds a, one number per channel, to every image of c.
RT_API int cudnnAddTensor(Handle* h, const void* alpha, Tensor* a, const void* ap, const void* beta, Tensor* c, void* cp) {
  if (!is(h) || !is(a) || !is(c) || a->n != 1 || a->h != 1 || a->w != 1 || a->c != c->c) return BadParam;
  Tensor t = *c;
  float scale = *(const float*)alpha, keep = *(const float*)beta;
  rt::Op op{"cudnnAddTensor", [=] {
              const float* from = (const float*)ap;
              float* to = (float*)cp;
              if (!driver().within_device(ap, t.c * sizeof(float)) || !driver().within_device(cp, t.elements() * sizeof(float))) {
                rt::say("cuDNN: a bias, or what it is added to, leaves the memory that was allocated");
                return rt::IllegalAddress;
              }
              for (size_t i = 0; i < t.elements(); i++) to[i] = keep * to[i] + scale * from[i / ((size_t)t.h * t.w) % t.c];
              return rt::Success;
            }};
  return driver().submit(h->stream, &op) ? dnn::ExecutionFailed : Success;
}
