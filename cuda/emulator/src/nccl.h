// Communicators of the emulator's NCCL: creation and destruction (nccl.cpp), and collectives
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

// A Comm lives until its handle, and all operations in streams and graphs that refer to it, are
// destroyed.
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
  // fail sets the error that GetAsyncError returns. Peers then wait until they are aborted.
  void fail(Status s, const std::string& why);
};

// Work is one call. The calls of a group are carried out together.
struct Work {
  Kind kind;
  const char* from;
  char* to;
  size_t count;
  int type, op, root;  // root is the peer of Send and Receive
};

size_t size_of(int type);  // 0 if the type is unknown
size_t bytes_from(const Work& w, int ranks);
size_t bytes_to(const Work& w, int ranks);

// carry_out carries out a group on one rank. It returns when the group is done or the
// communicator is stopped.
void carry_out(Comm& c, const std::vector<Work>& works);

}  // namespace nccl
