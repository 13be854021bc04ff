// Stands in for libnccl.so.2. Ranks are processes or threads of one host, and communicate through
// shared memory. Like NCCL, a communicator whose peer has died waits until it is aborted.
#include "nccl.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <algorithm>
#include <utility>

namespace nccl {
namespace {

const rt::Remote& driver() { return rt::remote((const void*)driver); }

struct UniqueId {
  char internal[128];
};

// Config has the layout of 2.14. Newer ones begin with the same fields.
struct Config {
  size_t size;
  unsigned magic, version;
  int blocking;
};
constexpr unsigned config_magic = 0xcafebeef;

struct Handle {
  std::shared_ptr<Comm> comm;
  std::thread starting;
};

thread_local std::string last_error;

int refuse(Status s, const std::string& why) {
  last_error = why;
  rt::say("NCCL: %s", why.c_str());
  return s;
}

// version returns the emulated version of NCCL, in the numbering of ncclGetVersion.
int version() {
  int major = 2, minor = 30, patch = 7;
  if (const char* as = getenv("RINGTRAIN_EMULATOR_NCCL")) minor = patch = 0, sscanf(as, "%d.%d.%d", &major, &minor, &patch);
  return major * 10000 + minor * 100 + patch;
}

// host returns NCCL's name of the machine, which is NCCL_HOSTID if that is set. NCCL reads it
// once, so all ranks of a process have the same host.
const std::string& host() {
  static const std::string once = [] {
    char name[64] = "";
    if (const char* id = getenv("NCCL_HOSTID")) return std::string(id).substr(0, sizeof name - 1);
    gethostname(name, sizeof name - 1);
    return std::string(name);
  }();
  return once;
}

// multi_rank is the first version with NCCL_MULTI_RANK_GPU_ENABLE.
constexpr int multi_rank = 23003;

// duplicate returns NCCL's error for two ranks on one device.
std::string duplicate(const Comm& c, int other) {
  if (version() >= multi_rank) return "Multiple Ranks are using the same GPU/Partition. Set NCCL_MULTI_RANK_GPU_ENABLE=1 to enable this configuration.";
  return "Duplicate GPU detected : rank " + std::to_string(c.rank) + " and rank " + std::to_string(other) + " both on CUDA device " + std::to_string(c.device);
}

bool shares_device(const Comm& c, int r, int q) {
  const Member &a = c.segment->members[r], &b = c.segment->members[q];
  const char* allowed = version() < multi_rank ? nullptr : getenv("NCCL_MULTI_RANK_GPU_ENABLE");
  return a.device == b.device && !strcmp(a.host, b.host) && !(allowed && !strcmp(allowed, "1"));
}

// start connects to the other ranks.
void start(const std::shared_ptr<Comm>& c) {
  c->segment = attach(c->name);
  if (!c->segment) return c->fail(SystemError, "no shared memory " + c->name);
  Member& me = c->segment->members[c->rank];
  me.device = c->device;
  me.size = c->size;
  snprintf(me.host, sizeof me.host, "%s", host().c_str());
  c->segment->arrived++;
  bool met = patient(c->stop, [&] { return c->segment->arrived >= (uint32_t)c->size; });
  if (c->rank == 0 || !met) forget(c->name);
  if (!met) return;
  for (int r = 0; r < c->size; r++) {
    if (c->segment->members[r].size != c->size) return c->fail(InvalidUsage, "the ranks do not agree on their number");
    if (r != c->rank && shares_device(*c, r, c->rank)) return c->fail(InvalidUsage, duplicate(*c, r));
  }
  int busy = InProgress;
  c->state.compare_exchange_strong(busy, Success);
}

struct Pending {
  Handle* handle;
  void* stream;
  Work work;
};
thread_local int depth;
thread_local std::vector<Pending> group;
thread_local std::vector<Handle*> starting;

// finish waits until a blocking communicator has started.
int finish(Handle* h) {
  if (!h->comm->blocking) return InProgress;
  h->starting.join();
  return h->comm->state;
}

int launch(Handle* h, std::string name, int rank, int size, bool blocking, Handle** out, std::function<bool(Comm&)> before) {
  int device = driver().found ? driver().current_device() : -1;
  if (device < 0) return refuse(CudaError, "no CUDA context in this thread");
  if (!h) h = new Handle;
  auto c = std::make_shared<Comm>();
  c->name = name, c->rank = rank, c->size = size, c->device = device, c->blocking = blocking;
  h->comm = c;
  h->starting = std::thread([=] {
    if (before && !before(*c)) return;
    start(c);
  });
  *out = h;
  if (depth) return starting.push_back(h), Success;
  return finish(h);
}

int init(Handle** out, int size, const UniqueId& id, int rank, bool blocking) {
  if (size < 1 || size > most_ranks || rank < 0 || rank >= size) return refuse(InvalidArgument, "rank " + std::to_string(rank) + " of " + std::to_string(size));
  std::string name(id.internal, strnlen(id.internal, sizeof id.internal));
  if (name.compare(0, 16, "/ringtrain-nccl-")) return refuse(InvalidArgument, "not a unique id of this library");
  return launch(nullptr, name, rank, size, blocking, out, nullptr);
}

int submit(Handle* h, void* stream, std::vector<Work> works) {
  auto c = h->comm;
  auto uses = c->uses;
  rt::Op op{"nccl", [=]() -> rt::Result {
              for (const Work& w : works) {
                size_t from = bytes_from(w, c->size), to = bytes_to(w, c->size);
                bool reads = w.kind != Broadcast || c->rank == w.root, writes = w.kind != Reduce || c->rank == w.root;
                if ((reads && from && !driver().within_device(w.from, from)) || (writes && to && !driver().within_device(w.to, to))) {
                  rt::say("NCCL: a collective of %zu elements leaves the memory that was allocated", w.count);
                  return rt::IllegalAddress;
                }
              }
              carry_out(*c, works);
              return (void)uses, rt::Success;
            }};
  return driver().submit(stream, &op) ? CudaError : Success;
}

int flush() {
  int result = Success;
  for (Handle* h : std::exchange(starting, {})) {
    int r = finish(h);
    if (r != Success && result == Success) result = r;
  }
  auto pending = std::exchange(group, {});
  for (size_t i = 0; i < pending.size(); i++) {
    if (!pending[i].handle) continue;
    std::vector<Work> works;
    Handle* h = pending[i].handle;
    for (size_t j = i; j < pending.size(); j++)
      if (pending[j].handle == h) works.push_back(pending[j].work), pending[j].handle = nullptr;
    if (int r = submit(h, pending[i].stream, works)) return r;
  }
  return result;
}

int enqueue(Handle* h, void* stream, Work w) {
  if (!h) return InvalidArgument;
  Comm& c = *h->comm;
  if (c.state == InProgress) return refuse(InvalidUsage, "the communicator has not finished to start; ask ncclCommGetAsyncError");
  if (c.state != Success) return c.state;
  if (c.stop) return InvalidUsage;
  if (!size_of(w.type) || w.op < 0 || w.op > 4 || w.root < 0 || w.root >= c.size)
    return refuse(InvalidArgument, "type " + std::to_string(w.type) + ", operation " + std::to_string(w.op) + ", rank " + std::to_string(w.root));
  group.push_back({h, stream, w});
  return depth ? (int)Success : flush();
}

// end frees a communicator once nothing uses it: its work in streams is done, and no graph holds
// its operations. Every NCCL waits for both, also in Abort. A thread that is still starting the
// communicator sees stop.
int end(Handle* h) {
  if (h->starting.joinable()) h->starting.join();
  while (h->comm->uses.use_count() > 1) nap();
  h->comm->stop = true;
  delete h;
  return Success;
}

// colors exchanges the arguments of split and sets this rank's part.
bool colors(Comm& parent, Comm& part, int color, int key) {
  Segment& s = *parent.segment;
  Member& me = s.members[parent.rank];
  uint64_t turn = ++parent.splits;
  me.color = color, me.key = key;
  me.splits = turn;
  std::vector<std::pair<int, int>> mates;  // key, rank
  auto stopped = [&](std::atomic<uint64_t> Member::* field) {
    for (int r = 0; r < parent.size; r++)
      if (!patient(part.stop, [&] { return (s.members[r].*field) >= turn; })) return true;
    return false;
  };
  if (stopped(&Member::splits)) return false;
  for (int r = 0; r < parent.size; r++)
    if (s.members[r].color == color) mates.push_back({s.members[r].key, r});
  me.seen = turn;
  if (stopped(&Member::seen)) return false;
  std::sort(mates.begin(), mates.end());
  part.size = (int)mates.size();
  part.rank = (int)(std::find(mates.begin(), mates.end(), std::make_pair(key, parent.rank)) - mates.begin());
  part.name = parent.name + "-" + std::to_string(turn) + "." + std::to_string(color);
  return true;
}

}  // namespace

void Comm::fail(Status s, const std::string& why) {
  error = why;
  rt::say("NCCL: %s", why.c_str());
  state = s;
}

}  // namespace nccl

using namespace nccl;

RT_API int ncclGetVersion(int* v) { return *v = version(), Success; }

RT_API const char* ncclGetErrorString(int s) {
  switch (s) {
    case Success: return "no error";
    case CudaError: return "unhandled cuda error (run with NCCL_DEBUG=INFO for details)";
    case SystemError: return "unhandled system error (run with NCCL_DEBUG=INFO for details)";
    case Internal: return "internal error - please report this issue to the NCCL developers";
    case InvalidArgument: return "invalid argument (run with NCCL_DEBUG=WARN for details)";
    case InvalidUsage: return "invalid usage (run with NCCL_DEBUG=WARN for details)";
    case RemoteError: return "remote process exited or there was a network error";
    case InProgress: return "NCCL operation in progress";
    default: return "unknown result code";
  }
}

RT_API int ncclGetUniqueId(UniqueId* id) {
  memset(id, 0, sizeof *id);
  unsigned char random[12];
  FILE* f = fopen("/dev/urandom", "rb");
  bool ok = f && fread(random, 1, sizeof random, f) == sizeof random;
  if (f) fclose(f);
  if (!ok) return SystemError;
  int n = snprintf(id->internal, sizeof id->internal, "/ringtrain-nccl-");
  for (unsigned char b : random) n += snprintf(id->internal + n, sizeof id->internal - n, "%02x", b);
  return Success;
}

RT_API int ncclCommInitRank(Handle** out, int size, UniqueId id, int rank) { return init(out, size, id, rank, true); }

RT_API int ncclCommInitRankConfig(Handle** out, int size, UniqueId id, int rank, const Config* c) {
  if (c && c->magic != config_magic) return refuse(InvalidArgument, "the config is not initialized");
  return init(out, size, id, rank, !c || c->blocking != 0);
}

// rt_init_rank is ncclCommInitRankConfig for callers that cannot pass structs by value.
RT_API int rt_init_rank(Handle** out, int size, const UniqueId* id, int rank, int blocking) { return init(out, size, *id, rank, blocking); }

RT_API int ncclCommGetAsyncError(Handle* h, int* state) {
  if (!h) return InvalidArgument;
  return *state = h->comm->state, Success;
}

RT_API const char* ncclGetLastError(Handle* h) {
  if (h && h->comm->state != Success) last_error = h->comm->error;
  return last_error.c_str();
}

RT_API int ncclCommAbort(Handle* h) {
  if (!h) return Success;
  if (const char* stuck = getenv("RINGTRAIN_EMULATOR_NCCL_STUCK"); stuck && !strcmp(stuck, "1"))
    for (;;) pause();
  h->comm->stop = true;
  return end(h);
}

RT_API int ncclCommFinalize(Handle* h) { return h ? Success : InvalidArgument; }

RT_API int ncclCommDestroy(Handle* h) { return h ? end(h) : (int)Success; }

RT_API int ncclCommCount(Handle* h, int* n) { return *n = h->comm->size, Success; }
RT_API int ncclCommUserRank(Handle* h, int* r) { return *r = h->comm->rank, Success; }
RT_API int ncclCommCuDevice(Handle* h, int* d) { return *d = h->comm->device, Success; }

RT_API int ncclCommSplit(Handle* h, int color, int key, Handle** out, const Config* config) {
  if (version() < 21801) return refuse(InvalidUsage, "ncclCommSplit came with 2.18.1");
  if (h->comm->state != Success) return InvalidUsage;
  bool blocking = config ? config->blocking != 0 : h->comm->blocking;
  std::shared_ptr<Comm> parent = h->comm;
  if (color < 0) {  // NCCL_SPLIT_NOCOLOR: only takes part in the exchange
    Comm nobody;
    colors(*parent, nobody, color, key);
    return *out = nullptr, Success;
  }
  return launch(nullptr, "", 0, 0, blocking, out, [=](Comm& part) { return colors(*parent, part, color, key); });
}

RT_API int ncclGroupStart() { return depth++, Success; }
RT_API int ncclGroupEnd() {
  if (depth == 0) return refuse(InvalidUsage, "ncclGroupEnd without ncclGroupStart");
  return --depth ? (int)Success : flush();
}

RT_API int ncclAllReduce(const char* from, char* to, size_t n, int type, int op, Handle* h, void* s) {
  return enqueue(h, s, {AllReduce, from, to, n, type, op, 0});
}
RT_API int ncclReduce(const char* from, char* to, size_t n, int type, int op, int root, Handle* h, void* s) {
  return enqueue(h, s, {Reduce, from, to, n, type, op, root});
}
RT_API int ncclBroadcast(const char* from, char* to, size_t n, int type, int root, Handle* h, void* s) {
  return enqueue(h, s, {Broadcast, from, to, n, type, 0, root});
}
RT_API int ncclBcast(char* buffer, size_t n, int type, int root, Handle* h, void* s) { return ncclBroadcast(buffer, buffer, n, type, root, h, s); }
RT_API int ncclAllGather(const char* from, char* to, size_t n, int type, Handle* h, void* s) {
  return enqueue(h, s, {AllGather, from, to, n, type, 0, 0});
}
RT_API int ncclReduceScatter(const char* from, char* to, size_t n, int type, int op, Handle* h, void* s) {
  return enqueue(h, s, {ReduceScatter, from, to, n, type, op, 0});
}
RT_API int ncclSend(const char* from, size_t n, int type, int peer, Handle* h, void* s) {
  return enqueue(h, s, {Send, from, nullptr, n, type, 0, peer});
}
RT_API int ncclRecv(char* to, size_t n, int type, int peer, Handle* h, void* s) {
  return enqueue(h, s, {Receive, nullptr, to, n, type, 0, peer});
}
RT_API int ncclCommRegister(Handle*, void*, size_t, void** handle) { return *handle = nullptr, Success; }
RT_API int ncclCommDeregister(Handle*, void*) { return Success; }
