// What the parts of the stand-in for libcuda.so.1 share, and what the stand-ins
// of cuBLASLt and NCCL call in it. Every object is behind one lock, world; only
// the work of streams runs outside it.
#pragma once
#include <stddef.h>
#include <stdint.h>

#include <condition_variable>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "machine.h"

#define RT_API extern "C" __attribute__((visibility("default")))

namespace rt {

// CUresult, with CUDA's values.
enum Result : int {
  Success = 0,
  InvalidValue = 1,
  OutOfMemory = 2,
  NotInitialized = 3,
  InvalidDevice = 101,
  InvalidImage = 200,
  InvalidContext = 201,
  InvalidPtx = 218,
  IllegalState = 401,
  InvalidHandle = 400,
  NotFound = 500,
  NotReady = 600,
  IllegalAddress = 700,
  LaunchOutOfResources = 701,
  ContextIsDestroyed = 709,
  MisalignedAddress = 716,
  LaunchFailed = 719,
  NotSupported = 801,
  CaptureUnsupported = 900,
  CaptureInvalidated = 901,
  CaptureMerge = 902,
  CaptureUnmatched = 903,
  CaptureUnjoined = 904,
  CaptureIsolation = 905,
  CaptureImplicit = 906,
  CapturedEvent = 907,
  CaptureWrongThread = 908,
};

struct Stream;

// An Op is what a stream does and a graph repeats.
struct Op {
  std::string name;
  std::function<Result()> run;
};

// A Node is an Op of a graph, and the nodes that it comes after: those that the
// stream it was captured in had come to, or waited for.
struct Node {
  Op op;
  std::vector<size_t> after;
  bool branch;  // captured in another stream than the one that began
};
struct Graph {
  std::vector<Node> nodes;
};
// A GraphExec runs its nodes one after the other, in an order that the edges allow:
// branches as late as they may be at the first launch, as early at the second, and so
// on. An edge that is missing then shows in a wrong result.
struct GraphExec {
  std::shared_ptr<const std::vector<Op>> late, early;
  uint64_t launches = 0;
};

enum CaptureMode { Global = 0, ThreadLocal = 1, Relaxed = 2 };

struct Capture {
  std::unique_ptr<Graph> graph{new Graph};
  Stream* origin;
  std::thread::id thread;
  CaptureMode mode;
  bool invalid = false;
  std::map<Stream*, std::vector<size_t>> ends;  // the nodes that the next one of each stream in it comes after
};

// A Primary is the primary context of a device.
struct Primary {
  int device = 0;
  int references = 0;
  Result broken = Success;  // after a fault every call returns it
  size_t used = 0;
  Stream* legacy = nullptr;
  std::vector<Stream*> streams;  // with the legacy one
};

// A Stream runs its operations in order, on a thread of its own. It begins an
// operation as late as it may: when somebody waits or asks, or after a while. One
// of high priority begins some operations at once, as if by chance.
struct Stream {
  Primary* primary;
  unsigned flags;
  int priority, patience;
  std::deque<Op> queue;
  uint64_t submitted = 0, done = 0, allowed = 0;
  bool closing = false;
  uint32_t chance = 1;
  std::shared_ptr<Capture> capture;
};

struct Event {
  Primary* primary;
  unsigned flags;
  Stream* stream = nullptr;  // of the last record
  uint64_t ticket = 0;
  double time = 0;                    // when the record was reached
  std::shared_ptr<double> reached;    // where the record writes it
  std::shared_ptr<Capture> captured;  // of the last record
  std::vector<size_t> ends;           // the nodes that who waits for it comes after
};

extern std::mutex& world;
extern std::condition_variable& changed;
using Lock = std::unique_lock<std::mutex>;

// Contexts (device.cpp).
Result enter(Primary** primary);  // the calling thread's context, if it can be used
extern bool initialized;
extern int device_count;

// Memory (memory.cpp).
constexpr uint32_t poison = 0xffc5a5a5;  // a NaN
bool within(const void* at, size_t bytes);        // memory of a device, or pinned
bool within_device(const void* at, size_t bytes);
bool pinned(const void* at);
std::shared_ptr<const std::vector<Span>> spans(int device);
size_t memory_limit();
void free_all(int device);

// Modules (module.cpp).
void unload_all(Primary* p);

// Streams (stream.cpp). All are called with world locked.
Result lookup(void* handle, Primary* p, Stream** s);
Result submit(Stream* s, Op op);
void wait_for(Lock& lock, Stream* s, uint64_t ticket);
void wait_for_all(Lock& lock, Primary* p);
void kick(Stream* s, uint64_t ticket);
Stream* new_stream(Primary* p, unsigned flags, int priority);

// Capture (capture.cpp). forbid is for calls that wait or allocate: it returns
// CaptureUnsupported, and spoils the captures, if this thread may not make one.
Result forbid(const char* call);
Result spoil(Stream* s, Result why);
Result captured(Stream* s, Op op);
void end_captures(Primary* p);  // of a context that is gone

// say tells the user what the numbers of CUDA cannot.
__attribute__((format(printf, 1, 2))) void say(const char* format, ...);

double now();

}  // namespace rt
