// The shared memory through which the ranks of a communicator exchange data.
#pragma once
#include <stddef.h>
#include <stdint.h>

#include <atomic>
#include <string>

namespace nccl {

constexpr int most_ranks = 16;
constexpr size_t slot_bytes = 256 << 10, box_bytes = 64 << 10;

// A Call describes a rank's call. It must be the same on all ranks.
struct Call {
  int kind, type, op, root;
  uint64_t count;
  bool operator==(const Call& o) const { return kind == o.kind && type == o.type && op == o.op && root == o.root && count == o.count; }
};

// A Member is the part that one rank writes and the others read. posted counts the chunks that the
// rank has put into its slot. done counts the chunks that it has read from all slots. After gave_up
// it may be ahead of the others.
struct Member {
  std::atomic<uint64_t> posted, done, splits, seen;
  std::atomic<bool> gave_up;
  Call call;
  int color, key, device, size;
  char host[64];
  char slot[slot_bytes];
};

// A Box carries the messages of one rank to another.
struct Box {
  std::atomic<uint64_t> posted, taken;
  uint64_t bytes;
  char data[box_bytes];
};

struct Segment {
  std::atomic<uint32_t> arrived;
  Member members[most_ranks];
  Box boxes[most_ranks][most_ranks];  // from, to
};

// attach maps the segment with this name, and creates it if necessary.
Segment* attach(const std::string& name);
void detach(Segment* s);
void forget(const std::string& name);

// patient waits until ready returns true. It returns false if stop is set first.
template <class F> bool patient(const std::atomic<bool>& stop, F ready);
void nap();

template <class F> bool patient(const std::atomic<bool>& stop, F ready) {
  for (int i = 0; !ready(); i++) {
    if (stop) return false;
    if (i > 100) nap();
  }
  return true;
}

}  // namespace nccl
