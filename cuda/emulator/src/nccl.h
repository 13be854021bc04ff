// Communicators of NCCL's stand-in: their life (nccl.cpp) and their collectives
// (collectives.cpp).
#pragma once
#include <memory>
#include <thread>
#include <vector>

#include "remote.h"
#include "segment.h"

namespace nccl {

enum Status { Success = 0, CudaError = 1, SystemError = 2, Internal = 3, InvalidArgument = 4, InvalidUsage = 5, RemoteError = 6, InProgress = 7 };

enum Kind { AllReduce = 1, Reduce, Broadcast, AllGather, ReduceScatter, Send, Receive };

// A Comm lives as long as its handle or an operation, in a stream or a graph,
// refers to it.
struct Comm {
  std::string name;
  int rank, size, device;
  bool blocking = true;
  Segment* segment = nullptr;
  std::atomic<int> state{InProgress};
  std::atomic<bool> stop{false};
  std::shared_ptr<int> uses{new int};  // held by operations
  std::string error;
  uint64_t chunks = 0, splits = 0;

  ~Comm() {
    if (segment) detach(segment);
  }
  // fail is what GetAsyncError reports. Peers will wait for ever.
  void fail(Status s, const std::string& why);
};

// Work is one call. Those of a group are carried out together.
struct Work {
  Kind kind;
  const char* from;
  char* to;
  size_t count;
  int type, op, root;  // or the peer
};

size_t size_of(int type);  // 0: unknown
size_t bytes_from(const Work& w, int ranks);
size_t bytes_to(const Work& w, int ranks);

// carry_out does the works of one group on one rank, and returns when they are
// done or the communicator is stopped.
void carry_out(Comm& c, const std::vector<Work>& works);

}  // namespace nccl
