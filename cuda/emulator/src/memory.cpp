// Device and pinned memory, copies and fills. Each allocation lies between inaccessible pages.
// Device memory is initially full of NaNs. Freed addresses are not reused.
#include "driver.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

using namespace rt;

namespace rt {
namespace {

struct Allocation {
  size_t bytes;
  int device;  // host: pinned memory
  char* mapping;
  size_t mapped;
  Cell* shadow;
};
constexpr int host = -1;
constexpr size_t page = 4096, alignment = 256;

std::map<uintptr_t, Allocation>& allocations = *new std::map<uintptr_t, Allocation>;
std::map<int, std::shared_ptr<const std::vector<Span>>>& views = *new std::map<int, std::shared_ptr<const std::vector<Span>>>;
std::mutex& table = *new std::mutex;  // guards the two above; streams lock it too

void* reserve(size_t bytes, int protection) {
  void* p = mmap(nullptr, bytes, protection, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  return p == MAP_FAILED ? nullptr : p;
}

// The end of an allocation, rounded up to the alignment, is the end of a page.
Result allocate(void** out, size_t bytes, int device) {
  if (bytes == 0) return InvalidValue;
  size_t rounded = (bytes + alignment - 1) & ~(alignment - 1), pages = (rounded + page - 1) & ~(page - 1);
  Allocation a{bytes, device, nullptr, pages + 2 * page, nullptr};
  a.mapping = (char*)reserve(a.mapped, PROT_NONE);
  if (!a.mapping || mprotect(a.mapping + page, pages, PROT_READ | PROT_WRITE)) return OutOfMemory;
  char* begin = a.mapping + page + pages - rounded;
  if (device != host) {
    for (size_t i = 0; i + 4 <= rounded; i += 4) memcpy(begin + i, &poison, 4);
    const char* races = getenv("RINGTRAIN_EMULATOR_RACES");
    if (!races || strcmp(races, "0")) a.shadow = (Cell*)reserve((rounded / 4 + 1) * sizeof(Cell), PROT_READ | PROT_WRITE);
  }
  std::lock_guard<std::mutex> l(table);
  allocations[(uintptr_t)begin] = a;
  views.clear();
  *out = begin;
  return Success;
}

Result release(void* at, bool device, size_t* bytes) {
  std::lock_guard<std::mutex> l(table);
  auto i = allocations.find((uintptr_t)at);
  if (i == allocations.end() || (i->second.device != host) != device) return InvalidValue;
  const Allocation& a = i->second;
  mmap(a.mapping, a.mapped, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED, -1, 0);
  if (a.shadow) munmap(a.shadow, (((a.bytes + alignment - 1) & ~(alignment - 1)) / 4 + 1) * sizeof(Cell));
  *bytes = a.bytes;
  allocations.erase(i);
  views.clear();
  return Success;
}

const Allocation* holding(const void* at, size_t bytes) {
  auto i = allocations.upper_bound((uintptr_t)at);
  if (i == allocations.begin()) return nullptr;
  --i;
  uintptr_t offset = (uintptr_t)at - i->first;
  return offset <= i->second.bytes && bytes <= i->second.bytes - offset && (bytes || offset < i->second.bytes) ? &i->second : nullptr;
}

}  // namespace

bool within(const void* at, size_t bytes) {
  std::lock_guard<std::mutex> l(table);
  return holding(at, bytes);
}

bool within_device(const void* at, size_t bytes) {
  std::lock_guard<std::mutex> l(table);
  const Allocation* a = holding(at, bytes);
  return a && a->device != host;
}

bool pinned(const void* at) {
  std::lock_guard<std::mutex> l(table);
  const Allocation* a = holding(at, 0);
  return a && a->device == host;
}

std::shared_ptr<const std::vector<Span>> spans(int device) {
  std::lock_guard<std::mutex> l(table);
  auto& view = views[device];
  if (!view) {
    auto v = std::make_shared<std::vector<Span>>();
    for (auto& [begin, a] : allocations)
      if (a.device == device || a.device == host) v->push_back(Span{begin, begin + a.bytes, a.shadow});
    view = v;
  }
  return view;
}

size_t memory_limit() {
  const char* wish = getenv("RINGTRAIN_EMULATOR_MEMORY");
  return wish ? strtoull(wish, nullptr, 10) : (size_t)4 << 30;
}

void free_all(int device) {
  std::vector<void*> all;
  {
    std::lock_guard<std::mutex> l(table);
    for (auto& [begin, a] : allocations)
      if (a.device == device) all.push_back((void*)begin);
  }
  size_t bytes;
  for (void* at : all) release(at, true, &bytes);
}

namespace {

// A side of a copy. Host memory that is not pinned is read or written before the call returns.
enum Side { Device, Host, Either };

Result copy(void* to, Side to_side, const void* from, Side from_side, size_t bytes, void* handle, bool async, const char* call) {
  Primary* p;
  Lock lock(world);
  if (Result r = enter(&p)) return r;
  if (to_side == Either) to_side = within_device(to, bytes) ? Device : Host;
  if (from_side == Either) from_side = within_device(from, bytes) ? Device : Host;
  if (bytes == 0) return Success;
  if ((to_side == Device && !within(to, bytes)) || (from_side == Device && !within(from, bytes))) {
    say("%s of %zu bytes from %p to %p leaves the memory that was allocated", call, bytes, from, to);
    return InvalidValue;
  }
  Stream* s;
  if (async) {
    if (Result r = lookup(handle, p, &s)) return r;
  } else {
    if (Result r = forbid(call)) return r;
    s = p->legacy;
  }
  bool pageable_from = from_side == Host && !pinned(from), pageable_to = to_side == Host && !pinned(to);
  if (s->capture && (pageable_from || pageable_to)) {
    say("%s is captured, but its host memory %p is not pinned", call, pageable_from ? from : to);
    return spoil(s, CaptureUnsupported);
  }
  Op op{call, nullptr};
  if (pageable_from && async) {
    auto staged = std::make_shared<std::vector<char>>((const char*)from, (const char*)from + bytes);
    op.run = [=] { return memmove(to, staged->data(), bytes), Success; };
  } else {
    op.run = [=] {
      if ((to_side == Device && !within(to, bytes)) || (from_side == Device && !within(from, bytes))) return IllegalAddress;
      return memmove(to, from, bytes), Success;
    };
  }
  if (Result r = submit(s, std::move(op))) return r;
  if (!async || pageable_to) {
    wait_for(lock, s, s->submitted);
    return p->broken;
  }
  return Success;
}

template <class T> Result fill(void* to, T v, size_t n, void* handle, bool async, const char* call) {
  Primary* p;
  Lock lock(world);
  if (Result r = enter(&p)) return r;
  if (n == 0) return Success;
  if (!within_device(to, n * sizeof v) || (uintptr_t)to % sizeof v) {
    say("%s of %zu elements at %p leaves the memory that was allocated, or is not aligned", call, n, to);
    return InvalidValue;
  }
  Stream* s;
  if (async) {
    if (Result r = lookup(handle, p, &s)) return r;
  } else {
    if (Result r = forbid(call)) return r;
    s = p->legacy;
  }
  Op op{call, [=] {
          if (!within(to, n * sizeof v)) return IllegalAddress;
          for (size_t i = 0; i < n; i++) ((T*)to)[i] = v;
          return Success;
        }};
  if (Result r = submit(s, std::move(op))) return r;
  if (async) return Success;
  wait_for(lock, s, s->submitted);
  return p->broken;
}

}  // namespace
}  // namespace rt

RT_API int cuMemAlloc_v2(void** out, size_t bytes) {
  Primary* p;
  Lock lock(world);
  if (Result r = enter(&p)) return r;
  if (Result r = forbid("cuMemAlloc")) return r;
  if (bytes > memory_limit() - p->used) return OutOfMemory;
  if (Result r = allocate(out, bytes, p->device)) return r;
  p->used += bytes;
  return Success;
}

RT_API int cuMemFree_v2(void* at) {
  Primary* p;
  Lock lock(world);
  if (Result r = enter(&p)) return r;
  if (!at) return Success;
  if (Result r = forbid("cuMemFree")) return r;
  wait_for_all(lock, p);
  size_t bytes;
  if (Result r = release(at, true, &bytes)) return r;
  p->used -= bytes;
  return Success;
}

RT_API int cuMemGetInfo_v2(size_t* free, size_t* total) {
  Primary* p;
  Lock lock(world);
  if (Result r = enter(&p)) return r;
  *total = memory_limit(), *free = *total - p->used;
  return Success;
}

RT_API int cuMemHostAlloc(void** out, size_t bytes, unsigned) {
  Primary* p;
  Lock lock(world);
  if (Result r = enter(&p)) return r;
  if (Result r = forbid("cuMemHostAlloc")) return r;
  return allocate(out, bytes, host);
}
RT_API int cuMemAllocHost_v2(void** out, size_t bytes) { return cuMemHostAlloc(out, bytes, 0); }

RT_API int cuMemFreeHost(void* at) {
  Primary* p;
  Lock lock(world);
  if (Result r = enter(&p)) return r;
  if (Result r = forbid("cuMemFreeHost")) return r;
  wait_for_all(lock, p);
  size_t bytes;
  return release(at, false, &bytes);
}

RT_API int cuMemHostGetDevicePointer_v2(void** out, void* at, unsigned flags) {
  Primary* p;
  Lock lock(world);
  if (Result r = enter(&p)) return r;
  if (flags || !pinned(at)) return InvalidValue;
  return *out = at, Success;
}

RT_API int cuMemcpyHtoD_v2(void* to, const void* from, size_t n) { return copy(to, Device, from, Host, n, nullptr, false, "cuMemcpyHtoD"); }
RT_API int cuMemcpyDtoH_v2(void* to, const void* from, size_t n) { return copy(to, Host, from, Device, n, nullptr, false, "cuMemcpyDtoH"); }
RT_API int cuMemcpyDtoD_v2(void* to, const void* from, size_t n) { return copy(to, Device, from, Device, n, nullptr, false, "cuMemcpyDtoD"); }
RT_API int cuMemcpy(void* to, const void* from, size_t n) { return copy(to, Either, from, Either, n, nullptr, false, "cuMemcpy"); }
RT_API int cuMemcpyHtoDAsync_v2(void* to, const void* from, size_t n, void* s) { return copy(to, Device, from, Host, n, s, true, "cuMemcpyHtoDAsync"); }
RT_API int cuMemcpyDtoHAsync_v2(void* to, const void* from, size_t n, void* s) { return copy(to, Host, from, Device, n, s, true, "cuMemcpyDtoHAsync"); }
RT_API int cuMemcpyDtoDAsync_v2(void* to, const void* from, size_t n, void* s) { return copy(to, Device, from, Device, n, s, true, "cuMemcpyDtoDAsync"); }
RT_API int cuMemcpyAsync(void* to, const void* from, size_t n, void* s) { return copy(to, Either, from, Either, n, s, true, "cuMemcpyAsync"); }
RT_API int cuMemsetD8_v2(void* to, uint8_t v, size_t n) { return fill(to, v, n, nullptr, false, "cuMemsetD8"); }
RT_API int cuMemsetD16_v2(void* to, uint16_t v, size_t n) { return fill(to, v, n, nullptr, false, "cuMemsetD16"); }
RT_API int cuMemsetD32_v2(void* to, uint32_t v, size_t n) { return fill(to, v, n, nullptr, false, "cuMemsetD32"); }
RT_API int cuMemsetD8Async(void* to, uint8_t v, size_t n, void* s) { return fill(to, v, n, s, true, "cuMemsetD8Async"); }
RT_API int cuMemsetD16Async(void* to, uint16_t v, size_t n, void* s) { return fill(to, v, n, s, true, "cuMemsetD16Async"); }
RT_API int cuMemsetD32Async(void* to, uint32_t v, size_t n, void* s) { return fill(to, v, n, s, true, "cuMemsetD32Async"); }
