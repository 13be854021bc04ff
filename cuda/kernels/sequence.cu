// Embedding, bit for bit, and attention, whose sums have another order than in nn/cpu. A row of
// qkv has, for each position, a query of each head, then a key and then a value of each.

// Backend.Embed, with n elements of y.
extern "C" __global__ void embed(float* y, const float* table, const int* ids, i64 n, int width) {
  for (i64 e = global_thread(); e < n; e += global_threads()) y[e] = table[(i64)ids[e / width] * width + e % width];
}

// Backend.EmbedGrad, with n elements of dtable. Each adds up its own gradients, in the order
// of ids, so the result does not depend on which thread is faster.
extern "C" __global__ void embed_grad(float* dtable, const float* dy, const int* ids, i64 n, int width, int count) {
  for (i64 e = global_thread(); e < n; e += global_threads()) {
    int row = (int)(e / width), column = (int)(e % width);
    float sum = dtable[e];
    for (int i = 0; i < count; i++)
      if (ids[i] == row) sum = __fadd_rn(sum, dy[(i64)i * width + column]);
    dtable[e] = sum;
  }
}

// Heads is nn.Heads. scale is its Scale.
struct Heads {
  int positions, heads, width, causal;
  float scale;
};

// all returns the width of a result of all heads.
__device__ __forceinline__ int all(const Heads& a) { return a.heads * a.width; }

// seen returns how many keys position t sees.
__device__ __forceinline__ int seen(const Heads& a, int t) { return a.causal ? t + 1 : a.positions; }

// A Query is one query of one head.
struct Query {
  int t;         // its position
  i64 row, at;   // offsets of its row's vectors of this head in qkv, and of its result in y
};

// query_of returns query i of all rows, heads and positions, in this order.
__device__ __forceinline__ Query query_of(const Heads& a, i64 i) {
  int t = (int)(i % a.positions), head = (int)(i / a.positions % a.heads);
  i64 first = i / a.positions / a.heads * a.positions;
  return Query{t, first * 3 * all(a) + head * a.width, (first + t) * all(a) + head * a.width};
}

__device__ __forceinline__ float inner(const float* x, const float* y, int n) {
  float sum = 0.f;
  for (int j = 0; j < n; j++) sum = __fmaf_rn(x[j], y[j], sum);
  return sum;
}

// warp_add returns the sum of v over the warp.
__device__ __forceinline__ float warp_add(float v) {
  for (int bits = 16; bits > 0; bits /= 2) v += __shfl_xor_sync(whole_warp, v, bits);
  return v;
}

// The weights of Backend.Attention. A warp has one query at a time.
extern "C" __global__ void attention_weights(float* weights, const float* qkv, int queries, Heads a) {
  for (i64 i = row_of_warp(); i < queries; i += rows_at_once()) {
    Query q = query_of(a, i);
    int keys = seen(a, q.t);
    float* w = weights + i * a.positions;
    const float *query = qkv + q.row + (i64)q.t * 3 * all(a), *key = qkv + q.row + all(a);
    float top = -infinity(), sum = 0.f;
    for (int u = lane(); u < keys; u += 32) {
      float s = __fmul_rn(inner(query, key + (i64)u * 3 * all(a), a.width), a.scale);
      w[u] = s;
      top = fmaxf(top, s);
    }
    top = warp_max(top);
    for (int u = lane(); u < keys; u += 32) sum += w[u] = exp32(__fsub_rn(w[u], top));
    float share = __fdiv_rn(1.f, warp_add(sum));
    for (int u = lane(); u < a.positions; u += 32) w[u] = u < keys ? __fmul_rn(w[u], share) : 0.f;
  }
}

// The results of Backend.Attention, with n elements of y.
extern "C" __global__ void attention(float* y, const float* weights, const float* qkv, i64 n, Heads a) {
  for (i64 e = global_thread(); e < n; e += global_threads()) {
    int j = (int)(e % a.width), head = (int)(e / a.width % a.heads), t = (int)(e / all(a) % a.positions);
    i64 row = e / all(a) / a.positions;
    const float *w = weights + ((row * a.heads + head) * a.positions + t) * a.positions, *value = qkv + row * a.positions * 3 * all(a) + 2 * all(a) + head * a.width + j;
    float sum = 0.f;
    int keys = seen(a, t);
    for (int u = 0; u < keys; u++) sum = __fmaf_rn(w[u], value[(i64)u * 3 * all(a)], sum);
    y[e] = sum;
  }
}

// The gradients of scores in Backend.AttentionGrad, times the scale, in place of weights. A
// warp has one query at a time.
extern "C" __global__ void attention_scores_grad(float* weights, const float* dy, const float* qkv, int queries, Heads a) {
  for (i64 i = row_of_warp(); i < queries; i += rows_at_once()) {
    Query q = query_of(a, i);
    int keys = seen(a, q.t);
    float *w = weights + i * a.positions, sum = 0.f;
    const float *d = dy + q.at, *value = qkv + q.row + 2 * all(a);
    for (int u = lane(); u < keys; u += 32) sum += w[u] * inner(d, value + (i64)u * 3 * all(a), a.width);
    sum = warp_add(sum);
    for (int u = lane(); u < keys; u += 32) w[u] = w[u] * (inner(d, value + (i64)u * 3 * all(a), a.width) - sum) * a.scale;
  }
}

// The gradients of Backend.AttentionGrad, with n of their elements per kind: of values if the
// kind is 2, from weights, and of queries and keys if it is 0 or 1, from gradients of scores.
__device__ __forceinline__ void attention_part(float* dqkv, const float* x, const float* weights, i64 e, int kind, const Heads& a) {
  int j = (int)(e % a.width), head = (int)(e / a.width % a.heads), t = (int)(e / all(a) % a.positions);
  i64 row = e / all(a) / a.positions;
  const float* w = weights + (row * a.heads + head) * a.positions * a.positions;
  // x is dy for values, and qkv, whose vectors are further apart, for the others.
  int pitch = kind == 2 ? all(a) : 3 * all(a);
  const float* from = x + row * a.positions * pitch + (kind == 0 ? all(a) : 0) + head * a.width + j;
  float sum = 0.f;
  if (kind == 0) {
    int keys = seen(a, t);
    for (int u = 0; u < keys; u++) sum = __fmaf_rn(w[(i64)t * a.positions + u], from[(i64)u * pitch], sum);
  } else {
    for (int u = a.causal ? t : 0; u < a.positions; u++) sum = __fmaf_rn(w[(i64)u * a.positions + t], from[(i64)u * pitch], sum);
  }
  dqkv[(row * a.positions + t) * 3 * all(a) + kind * all(a) + head * a.width + j] = sum;
}

// Those of values.
extern "C" __global__ void attention_values_grad(float* dqkv, const float* dy, const float* weights, i64 n, Heads a) {
  for (i64 e = global_thread(); e < n; e += global_threads()) attention_part(dqkv, dy, weights, e, 2, a);
}

// Those of queries and keys.
extern "C" __global__ void attention_grad(float* dqkv, const float* qkv, const float* scores, i64 n, Heads a) {
  for (i64 e = global_thread(); e < 2 * n; e += global_threads()) attention_part(dqkv, qkv, scores, e % n, e < n ? 0 : 1, a);
}
