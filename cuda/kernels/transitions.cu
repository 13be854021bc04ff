// Named entities: the states of package nn/ner. A block of one warp makes the moves of a part of
// a document, one after the other. Sums and units have the bits of nn/ner; exponentials and
// logarithms are those of float64, so losses and gradients may differ in the last bit.

// Part is nn.TransitionPart.
struct Part {
  int document, first, end, stop, row, next, begin, label;
};

// Transitions is nn.TransitionBatch. scale is 1/(1-rate) in float32, and least is as in dropout.
struct Transitions {
  const Part* parts;
  const int *documents, *tags;
  const float *products, *pad, *bias, *upper, *upper_bias;
  const Random* random;  // null for no dropout
  int *tokens, *largest;
  float *units, *dscores, *moves, *totals;
  int features, count, width, pieces, labels;
  unsigned layer, least;
  float scale;
};

// State is nn/ner's state.
struct State {
  int next, begin, label;
};

// The numbers of nn/ner's Features, of text.Actions, and of costs.
enum { three_tokens, six_tokens };
enum { action_missing, action_begin, action_in, action_last, action_unit, action_out };
enum { cost_none, cost_wrong, cost_impossible };

__device__ __forceinline__ int action_of(int tag) { return tag & 7; }
__device__ __forceinline__ int label_of(int tag) { return tag >> 4; }

__device__ __forceinline__ int move_count(const Transitions& t) { return 4 * t.labels + 2; }

// feature returns feature f of a state as a token of its document, or -1: ner.Features.
__device__ __forceinline__ int feature(int features, int f, const State& s) {
  if (f == 0) return s.next;
  if (s.begin < 0) return -1;
  if (features == three_tokens) return f == 1 ? s.begin : s.next - 1;
  return s.begin + f - 1 < s.next ? s.begin + f - 1 : -1;
}

// A Gold is what the costs of a state's moves depend on.
struct Gold {
  int action, label, after;  // of the next token, and the action of the one after it
  bool blank, more, sunk;    // whether an entity can begin there, another token follows, and the open entity is lost
};

__device__ __forceinline__ Gold gold_of(const int* tags, const State& s, int end) {
  int tag = tags[s.next], begin = s.begin < 0 ? 0 : tags[s.begin];
  bool more = end - s.next >= 2;
  return Gold{action_of(tag), label_of(tag), more ? action_of(tags[s.next + 1]) : action_missing, (tag & 8) != 0, more,
              (action_of(begin) != action_begin && action_of(begin) != action_unit) || label_of(begin) != s.label};
}

// cost returns the cost of a move: Moves.costs of nn/ner.
__device__ __forceinline__ int cost(int move, int labels, const State& s, const Gold& g) {
  int action = move < 4 * labels ? action_begin + move / labels : action_out, label = move % labels;
  if (s.begin >= 0) {
    if (action == action_out || label != s.label) return cost_impossible;
    if (action == action_last) return g.action == action_in && !g.sunk;
    if (action != action_in || !g.more) return cost_impossible;
    bool outside = g.after == action_out || g.after == action_missing;
    if (g.action == action_last) return !(g.sunk && outside);
    if (g.action == action_out) return !outside;
    return g.action == action_unit && g.after != action_out;
  }
  if (action == action_out) return move == 4 * labels ? cost_impossible : g.action == action_begin || g.action == action_unit;
  if (g.blank || (action != action_unit && !(action == action_begin && g.more))) return cost_impossible;
  if (g.action == action_missing) return cost_none;
  return g.action != action || g.label != label;
}

// apply makes a possible move: Moves.apply of nn/ner.
__device__ __forceinline__ void apply(State& s, int move, int labels) {
  int action = move < 4 * labels ? action_begin + move / labels : action_out;
  if (action == action_begin) s.begin = s.next, s.label = move % labels;
  if (action == action_last) s.begin = -1;
  s.next++;
}

// set_units writes the units of a state to its row, bit for bit as nn/ner.
__device__ __forceinline__ void set_units(const Transitions& t, const Part& p, const State& s, i64 row) {
  const int most = 4;  // pieces
  int wide = t.width * t.pieces, blocks = (t.width + 3) / 4;
  if (t.tokens)
    for (int f = lane(); f < t.count; f += 32) {
      int token = feature(t.features, f, s);
      t.tokens[row * t.count + f] = token < 0 ? -1 : p.first + token;
    }
  for (int u = lane(); u < t.width; u += 32) {
    float sums[most];
#pragma unroll
    for (int k = 0; k < most; k++) sums[k] = k < t.pieces ? t.bias[u * t.pieces + k] : 0.f;
    for (int f = 0; f < t.count; f++) {
      int token = feature(t.features, f, s);
      const float* from = (token < 0 ? t.pad + (i64)f * wide : t.products + ((i64)(p.first + token) * t.count + f) * wide) + u * t.pieces;
#pragma unroll
      for (int k = 0; k < most; k++)
        if (k < t.pieces) sums[k] = __fadd_rn(sums[k], from[k]);
    }
    float best = sums[0];
    int at = 0;
#pragma unroll
    for (int k = 1; k < most; k++)
      if (k < t.pieces && sums[k] > best) best = sums[k], at = k;
    if (t.pieces == 1 && best <= 0.f) best = 0.f, at = -1;
    if (t.random) {
      Words w = draw(*t.random, t.layer, p.document, (unsigned)(s.next * blocks + u / 4));
      unsigned word = u % 4 == 0 ? w.x : u % 4 == 1 ? w.y : u % 4 == 2 ? w.z : w.w;
      if (word >> 8 >= t.least)
        best = __fmul_rn(best, t.scale);
      else
        best = 0.f, at = -1;
    }
    t.units[row * t.width + u] = best;
    if (t.largest) t.largest[row * t.width + u] = at;
  }
}

// set_scores writes the scores of all moves. Four adjacent lanes have one move, and each adds
// every fourth product, as nn/ner does.
__device__ __forceinline__ void set_scores(const Transitions& t, float* scores, const float* units) {
  int moves = move_count(t), part = lane() % 4;
  for (int base = 0; base < moves; base += 8) {
    int m = base + lane() / 4;
    float sum = 0.f;
    if (m < moves) {
      const float* w = t.upper + (i64)m * t.width;
      int fours = t.width / 4 * 4;
      for (int i = part; i < fours; i += 4) sum = __fadd_rn(sum, __fmul_rn(units[i], w[i]));
      for (int i = fours; part == 0 && i < t.width; i++) sum = __fadd_rn(sum, __fmul_rn(units[i], w[i]));
    }
    sum = __fadd_rn(sum, __shfl_xor_sync(whole_warp, sum, 1));
    sum = __fadd_rn(sum, __shfl_xor_sync(whole_warp, sum, 2));
    if (m < moves && part == 0) scores[m] = __fadd_rn(sum, t.upper_bias[m]);
  }
}

// A Ranking is what the loss and the move of a state follow from.
struct Ranking {
  float top, best;  // the highest scores of all moves, and of those of the smallest cost
  int least, move;  // the smallest cost, and the possible move with the highest score, the first of several
};

__device__ __forceinline__ Ranking rank_moves(const Transitions& t, const float* scores, const State& s, const Gold& g) {
  const int none = 0x7fffffff;
  float top = -infinity(), right = -infinity(), most = -infinity();
  int move = none, free = 0;
  for (int m = lane(); m < move_count(t); m += 32) {
    float v = scores[m];
    int c = cost(m, t.labels, s, g);
    top = fmaxf(top, v);
    if (c == cost_none) right = fmaxf(right, v), free = 1;
    if (c != cost_impossible && (move == none || v > most)) most = v == v ? v : -infinity(), move = m;
  }
  for (int bits = 16; bits > 0; bits /= 2) {
    float v = __shfl_xor_sync(whole_warp, most, bits);
    int m = __shfl_xor_sync(whole_warp, move, bits);
    if (v > most || (v == most && m < move)) most = v, move = m;
  }
  top = warp_max(top), right = warp_max(right);
  free = __any_sync(whole_warp, free);
  return Ranking{top, free ? right : most, free ? cost_none : cost_wrong, move};
}

// add_loss returns the loss of a state, adds the squares of the gradients of its scores to
// squares, and replaces the scores by them if d is not null: logLoss of nn/ner. d may be scores.
__device__ __forceinline__ double add_loss(const Transitions& t, float* d, const float* scores, const State& s, const Gold& g, const Ranking& r, double& squares) {
  double all = 0, good = 0;
  for (int m = lane(); m < move_count(t); m += 32) {
    all += exp((double)__fsub_rn(scores[m], r.top));
    if (cost(m, t.labels, s, g) <= r.least) good += exp((double)__fsub_rn(scores[m], r.best));
  }
  all = warp_sum(all), good = warp_sum(good);
  for (int m = lane(); d && m < move_count(t); m += 32) {
    double v = (double)(float)exp((double)__fsub_rn(scores[m], r.top)) / all;
    if (cost(m, t.labels, s, g) <= r.least) v -= exp((double)__fsub_rn(scores[m], r.best)) / good;
    d[m] = (float)v;
    squares += (double)d[m] * (double)d[m];
  }
  return log(all) - log(good) + (double)__fsub_rn(r.top, r.best);
}

// Transitioner.Transitions, with a part per block.
extern "C" __global__ void transitions(Transitions t) {
  Part p = t.parts[blockIdx.x];
  State s = {p.next, p.begin, p.label};
  double loss = 0, squares = 0;
  for (i64 row = p.row; s.next < p.stop; row++) {
    float *units = t.units + row * t.width, *d = t.dscores + row * move_count(t), *scores = t.upper ? d : units;
    set_units(t, p, s, row);
    __syncthreads();
    if (t.upper) set_scores(t, scores, units);
    __syncthreads();
    Gold g = gold_of(t.tags + p.first, s, p.end);
    Ranking r = rank_moves(t, scores, s, g);
    loss += add_loss(t, t.tokens ? d : nullptr, scores, s, g, r, squares);
    if (lane() == 0) t.moves[row] = (float)r.move;
    apply(s, r.move, t.labels);
  }
  squares = warp_sum(squares);
  if (lane() > 0) return;
  t.totals[2 * blockIdx.x] = (float)loss;
  t.totals[2 * blockIdx.x + 1] = (float)squares;
}

// Transitioner.TransitionsGrad, with n = documents times features times pieces of all units. Each
// thread adds up the gradients of one feature and piece of a document in the order of its rows, so
// none needs an atomic. dproducts is 0 before. pads and biases have a row for each document.
extern "C" __global__ void transitions_grad(float* dproducts, float* pads, float* biases, const float* dunits, i64 n, Transitions t) {
  int wide = t.width * t.pieces;
  for (i64 e = global_thread(); e < n; e += global_threads()) {
    int piece = (int)(e % t.pieces), unit = (int)(e % wide) / t.pieces, f = (int)(e / wide % t.count);
    i64 document = e / wide / t.count;
    float pad = 0.f, bias = 0.f;
    for (i64 row = t.documents[document]; row < t.documents[document + 1]; row++) {
      if (t.largest[row * t.width + unit] != piece) continue;
      float d = dunits[row * t.width + unit];
      int token = t.tokens[row * t.count + f];
      bias = __fadd_rn(bias, d);
      if (token < 0) {
        pad = __fadd_rn(pad, d);
        continue;
      }
      float* to = dproducts + ((i64)token * t.count + f) * wide + e % wide;
      *to = __fadd_rn(*to, d);
    }
    pads[e] = pad;
    if (f == 0) biases[document * wide + e % wide] = bias;
  }
}
