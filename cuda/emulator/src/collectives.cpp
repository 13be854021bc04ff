#include <math.h>
#include <string.h>

#include <algorithm>
#include <cmath>

#include "nccl.h"

namespace nccl {
namespace {

struct Bf16 {
  uint16_t bits;
  operator float() const {
    uint32_t u = (uint32_t)bits << 16;
    float f;
    return memcpy(&f, &u, 4), f;
  }
  Bf16& operator=(float f) {
    uint32_t u;
    memcpy(&u, &f, 4);
    bits = f != f ? 0x7fff : (uint16_t)((u + 0x7fff + (u >> 16 & 1)) >> 16);
    return *this;
  }
};

struct Half {
  uint16_t bits;
  operator float() const {
    int exponent = bits >> 10 & 31, fraction = bits & 1023;
    float f = exponent == 31 ? (fraction ? NAN : INFINITY) : exponent ? ldexpf((float)(fraction + 1024), exponent - 25) : ldexpf((float)fraction, -24);
    return bits >> 15 ? -f : f;
  }
  Half& operator=(float f) {
    uint16_t sign = std::signbit(f) ? 0x8000 : 0;
    float a = fabsf(f);
    if (f != f) return bits = 0x7fff, *this;
    if (a >= 65520) return bits = sign | 0x7c00, *this;
    int exponent = 0;
    frexpf(a, &exponent);                       // a is in [2^(exponent-1), 2^exponent)
    exponent = std::max(exponent, -13);         // below are the subnormal numbers
    float units = nearbyintf(ldexpf(a, 11 - exponent));  // exact, then rounded to even
    // A carry from the fraction correctly increments the exponent.
    bits = sign | (uint16_t)((units < 1024 ? 0 : (exponent + 13) << 10) + (int)units);
    return *this;
  }
};

enum { Sum = 0, Prod, Max, Min, Avg };

// fold reduces the elements of all slots into to, in rank order.
template <class T, class Wide> void fold(char* to, const Segment& s, int ranks, size_t offset, size_t n, int op) {
  T* out = (T*)to;
  for (size_t i = 0; i < n; i++) {
    Wide v = ((const T*)(s.members[0].slot + offset))[i];
    for (int r = 1; r < ranks; r++) {
      Wide w = ((const T*)(s.members[r].slot + offset))[i];
      v = op == Prod ? v * w : op == Max ? std::max(v, w) : op == Min ? std::min(v, w) : v + w;
    }
    out[i] = op == Avg ? v / (Wide)ranks : v;
  }
}

void fold(char* to, const Segment& s, int ranks, size_t offset, size_t n, int type, int op) {
  switch (type) {
    case 0: return fold<int8_t, int8_t>(to, s, ranks, offset, n, op);
    case 1: return fold<uint8_t, uint8_t>(to, s, ranks, offset, n, op);
    case 2: return fold<int32_t, int32_t>(to, s, ranks, offset, n, op);
    case 3: return fold<uint32_t, uint32_t>(to, s, ranks, offset, n, op);
    case 4: return fold<int64_t, int64_t>(to, s, ranks, offset, n, op);
    case 5: return fold<uint64_t, uint64_t>(to, s, ranks, offset, n, op);
    case 6: return fold<Half, float>(to, s, ranks, offset, n, op);
    case 7: return fold<float, float>(to, s, ranks, offset, n, op);
    case 8: return fold<double, double>(to, s, ranks, offset, n, op);
    case 9: return fold<Bf16, float>(to, s, ranks, offset, n, op);
  }
}

// give_up ends a chunk when this rank is aborted. Like a kernel of NCCL it stops waiting for its
// peers, but does not leave them waiting: they get whatever is in its buffers, here zeros, and
// cannot tell.
void give_up(Member& me, size_t n, uint64_t chunk) {
  me.gave_up = true;
  memset(me.slot, 0, n);
  me.done = chunk;
}

// meet copies n bytes to this rank's slot, waits until all ranks have done so, and calls use. Like
// a kernel of NCCL it notices that this rank was aborted only while it waits. If it need not wait,
// it still sends and receives the right data.
template <class F> void meet(Comm& c, const Call& call, const char* from, size_t n, F use) {
  Segment& s = *c.segment;
  Member& me = s.members[c.rank];
  memcpy(me.slot, from, n);
  me.call = call;
  uint64_t chunk = ++c.chunks;
  me.posted = chunk;
  for (int r = 0; r < c.size; r++) {
    if (!patient(c.stop, [&] { return s.members[r].posted >= chunk; })) return give_up(me, n, chunk);
    const Call& other = s.members[r].call;
    if (!(other == call) && !s.members[r].gave_up && !c.stop) {
      c.fail(InvalidUsage, "ranks " + std::to_string(c.rank) + " and " + std::to_string(r) + " call differently: kind " + std::to_string(call.kind) +
                               " of " + std::to_string(call.count) + ", kind " + std::to_string(other.kind) + " of " + std::to_string(other.count));
      patient(c.stop, [] { return false; });
      return give_up(me, n, chunk);
    }
  }
  use();
  me.done = chunk;
  for (int r = 0; r < c.size; r++)  // a slot must not change while others read it
    if (!patient(c.stop, [&] { return s.members[r].done >= chunk; })) me.gave_up = true;
}

void collective(Comm& c, const Work& w) {
  size_t e = size_of(w.type), most = slot_bytes / 8;
  size_t total = w.kind == ReduceScatter ? w.count * c.size : w.count;
  Call call{w.kind, w.type, w.op, w.root, w.count};
  size_t mine_from = c.rank * w.count, mine_to = mine_from + w.count;
  for (size_t at = 0; at == 0 || at < total; at += most) {
    size_t n = std::min(most, total - at);
    bool sends = w.kind != Broadcast || c.rank == w.root;
    meet(c, call, sends ? w.from + at * e : nullptr, sends ? n * e : 0, [&] {
      const Segment& s = *c.segment;
      switch (w.kind) {
        case AllReduce: return fold(w.to + at * e, s, c.size, 0, n, w.type, w.op);
        case Reduce: return c.rank == w.root ? fold(w.to + at * e, s, c.size, 0, n, w.type, w.op) : (void)0;
        case Broadcast: memcpy(w.to + at * e, s.members[w.root].slot, n * e); return;
        case AllGather:
          for (int r = 0; r < c.size; r++) memcpy(w.to + (r * w.count + at) * e, s.members[r].slot, n * e);
          return;
        case ReduceScatter: {
          size_t lo = std::max(at, mine_from), hi = std::min(at + n, mine_to);
          if (lo < hi) fold(w.to + (lo - mine_from) * e, s, c.size, (lo - at) * e, hi - lo, w.type, w.op);
          return;
        }
        default: return;
      }
    });
  }
}

// messages carries out all sends and receives of a group, in any order in which they can proceed.
void messages(Comm& c, std::vector<Work> works) {
  std::vector<size_t> done(works.size());
  std::vector<bool> over(works.size());
  auto step = [&](size_t i) {
    const Work& w = works[i];
    bool sends = w.kind == Send;
    for (size_t j = 0; j < i; j++)  // messages of a pair of ranks keep their order
      if (!over[j] && works[j].kind == w.kind && works[j].root == w.root) return false;
    Box& box = sends ? c.segment->boxes[c.rank][w.root] : c.segment->boxes[w.root][c.rank];
    size_t total = w.count * size_of(w.type), n = std::min(box_bytes, total - done[i]);
    if (sends) {
      if (box.posted != box.taken) return false;
      memcpy(box.data, w.from + done[i], n);
      box.bytes = n;
      box.posted++;
    } else {
      if (box.posted == box.taken) return false;
      n = std::min<size_t>(box.bytes, total - done[i]);
      memcpy(w.to + done[i], box.data, n);
      box.taken++;
    }
    done[i] += n;
    over[i] = done[i] == total;
    return true;
  };
  patient(c.stop, [&] {
    bool all = true;
    for (size_t i = 0; i < works.size(); i++) {
      while (!over[i] && step(i)) {}
      all = all && over[i];
    }
    return all;
  });
}

}  // namespace

size_t size_of(int type) {
  switch (type) {
    case 0: case 1: return 1;
    case 6: case 9: return 2;
    case 2: case 3: case 7: return 4;
    case 4: case 5: case 8: return 8;
    default: return 0;
  }
}

size_t bytes_from(const Work& w, int ranks) { return w.kind == Receive ? 0 : w.count * size_of(w.type) * (w.kind == ReduceScatter ? ranks : 1); }
size_t bytes_to(const Work& w, int ranks) { return w.kind == Send ? 0 : w.count * size_of(w.type) * (w.kind == AllGather ? ranks : 1); }

void carry_out(Comm& c, const std::vector<Work>& works) {
  std::vector<Work> pairs;
  for (const Work& w : works) {
    if (w.kind == Send || w.kind == Receive) pairs.push_back(w);
    else collective(c, w);
  }
  if (!pairs.empty()) messages(c, pairs);
}

}  // namespace nccl
