// Declarations of the emulator's libcuda.so.1, some of them for its cuBLASLt, cuDNN and NCCL. One
// lock, world, guards every object. Only the work of streams runs without it.
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

// An Op is an operation of a stream or a graph.
struct Op {
  std::string name;
  std::function<Result()> run;
};

// A Node is an Op of a graph, and the nodes that it comes after: the last one in its stream, and
// those that the stream waits for.
struct Node {
  Op op;
  std::vector<size_t> after;
  bool branch;  // captured in a stream other than the origin
};
struct Graph {
  std::vector<Node> nodes;
};
// A GraphExec runs its nodes one after the other, in an order that the edges allow. Launches
// alternate between branches as late as possible and as early as possible, so that a missing edge
// gives a wrong result.
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
  std::map<Stream*, std::vector<size_t>> ends;  // by stream: the nodes that its next node comes after
};

// A Primary is the primary context of a device.
struct Primary {
  int device = 0;
  int references = 0;
  Result broken = Success;  // the first fault, which every later call returns
  size_t used = 0;
  Stream* legacy = nullptr;
  std::vector<Stream*> streams;  // including the legacy one
};

// A Stream runs its operations in order, on its own thread. It begins an operation as late as
// possible: when the program waits or queries, or after a while. A stream of high priority begins
// some operations at once, pseudo-randomly.
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
  std::shared_ptr<double> reached;    // the record writes it here
  std::shared_ptr<Capture> captured;  // of the last record
  std::vector<size_t> ends;           // nodes that a stream waiting for this event comes after
};

extern std::mutex& world;
extern std::condition_variable& changed;
using Lock = std::unique_lock<std::mutex>;

// Contexts (device.cpp).
Result enter(Primary** primary);  // returns the calling thread's context, or an error
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

// Capture (capture.cpp). forbid is for calls that wait or allocate. If a capture forbids them on
// this thread, it invalidates the capture and returns CaptureUnsupported.
Result forbid(const char* call);
Result spoil(Stream* s, Result why);
Result captured(Stream* s, Op op);
void end_captures(Primary* p);  // of a destroyed context

// say prints details that CUDA's error codes cannot express.
__attribute__((format(printf, 1, 2))) void say(const char* format, ...);

double now();

}  // namespace rt
