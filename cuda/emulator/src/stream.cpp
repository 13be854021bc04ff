// Streams and events. Each stream has a thread, which starts an operation only when the program
// waits for it or queries it. A program that forgets to wait thus sees old data.
#include "driver.h"

#include <signal.h>
#include <stdlib.h>

#include <algorithm>
#include <chrono>

using namespace rt;

namespace rt {
namespace {

constexpr unsigned non_blocking = 1;
constexpr unsigned no_timing = 2;

// A program may also poll memory, or wait for another device that waits for this one. So a stream
// begins after this many milliseconds without a new operation even if nothing waits for it.
constexpr int usual_patience = 20;

void work(Stream* s) {
  Lock lock(world);
  for (;;) {
    if (s->queue.empty()) {
      if (s->closing) return;
      changed.wait(lock);
      continue;
    }
    if (s->done >= s->allowed && !s->closing) {
      uint64_t before = s->submitted;
      // Other streams notify too, and must not prolong the wait.
      bool over = !changed.wait_for(lock, std::chrono::milliseconds(s->patience), [=] { return s->submitted != before || s->done < s->allowed || s->closing; });
      if (over) s->allowed = s->submitted;
      continue;
    }
    Op op = std::move(s->queue.front());
    s->queue.pop_front();
    if (s->primary->broken == Success) {
      lock.unlock();
      Result r = op.run();
      op.run = nullptr;  // destroys what it holds while unlocked
      lock.lock();
      if (r != Success && s->primary->broken == Success) s->primary->broken = r;
    }
    s->done++;
    changed.notify_all();
  }
}

Op waiting(Stream* on, uint64_t ticket) {
  return {"wait", [=] {
            Lock lock(world);
            wait_for(lock, on, ticket);
            return Success;
          }};
}

// at_once decides pseudo-randomly, the same in every run, whether work starts at once. Work that
// always starts late would hide missing waits.
bool at_once(Stream* s) {
  s->chance = s->chance * 1664525 + 1013904223;
  return s->chance >> 31;
}

void push(Stream* s, Op op) {
  s->queue.push_back(std::move(op));
  s->submitted++;
  changed.notify_all();
}

}  // namespace

Stream* new_stream(Primary* p, unsigned flags, int priority) {
  Stream* s = new Stream{};
  const char* patience = getenv("RINGTRAIN_EMULATOR_PATIENCE");
  s->primary = p, s->flags = flags, s->priority = priority, s->patience = patience ? atoi(patience) : usual_patience;
  p->streams.push_back(s);
  sigset_t all, before;  // only the program's own threads handle signals
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  std::thread(work, s).detach();
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
  return s;
}

Result lookup(void* handle, Primary* p, Stream** s) {
  if ((uintptr_t)handle <= 2) return *s = p->legacy, Success;
  auto i = std::find(p->streams.begin(), p->streams.end(), (Stream*)handle);
  if (i == p->streams.end()) return InvalidHandle;
  return *s = *i, Success;
}

// The legacy stream waits for all blocking streams, and they wait for it.
Result submit(Stream* s, Op op) {
  if (s->capture) return captured(s, std::move(op));
  Primary* p = s->primary;
  if (s == p->legacy) {
    for (Stream* t : p->streams) {
      if (t == s || t->flags & non_blocking) continue;
      if (t->capture) {
        say("%s in the legacy stream while a blocking stream is being captured", op.name.c_str());
        return spoil(t, CaptureImplicit);
      }
      if (t->done < t->submitted) push(s, waiting(t, t->submitted));
    }
  } else if (!(s->flags & non_blocking) && p->legacy->done < p->legacy->submitted) {
    push(s, waiting(p->legacy, p->legacy->submitted));
  }
  push(s, std::move(op));
  if (s->priority < 0 && at_once(s)) kick(s, s->submitted);
  return Success;
}

void kick(Stream* s, uint64_t ticket) {
  s->allowed = std::max(s->allowed, ticket);
  changed.notify_all();
}

void wait_for(Lock& lock, Stream* s, uint64_t ticket) {
  kick(s, ticket);
  changed.wait(lock, [=] { return s->done >= ticket; });
}

void wait_for_all(Lock& lock, Primary* p) {
  std::vector<Stream*> streams = p->streams;
  for (Stream* s : streams) wait_for(lock, s, s->submitted);
}

namespace {

struct Call {
  Primary* primary = nullptr;
  Stream* stream = nullptr;
  Lock lock{world};
  Result result;

  explicit Call(void* handle) {
    result = enter(&primary);
    if (result == Success) result = lookup(handle, primary, &stream);
  }
};

// asks checks a call that waits for a stream or queries it.
Result asks(Call& c, const char* call) {
  if (c.result) return c.result;
  if (c.stream->capture) {
    say("%s of a stream that is being captured", call);
    return spoil(c.stream, CaptureUnsupported);
  }
  return forbid(call);
}

std::vector<Event*>& events = *new std::vector<Event*>;

Result live(Event* e) { return std::find(events.begin(), events.end(), e) == events.end() ? InvalidHandle : Success; }

Result asks(Primary** p, Event* e, const char* call) {
  if (Result r = enter(p)) return r;
  if (Result r = live(e)) return r;
  if (e->captured) {
    say("%s of an event that was recorded in a capture", call);
    e->captured->invalid = true;
    return CapturedEvent;
  }
  return forbid(call);
}

}  // namespace
}  // namespace rt

RT_API int cuStreamCreateWithPriority(Stream** out, unsigned flags, int priority) {
  Primary* p;
  Lock lock(world);
  if (Result r = enter(&p)) return r;
  if (flags & ~non_blocking) return InvalidValue;
  return *out = new_stream(p, flags, priority), Success;
}
RT_API int cuStreamCreate(Stream** out, unsigned flags) { return cuStreamCreateWithPriority(out, flags, 0); }

RT_API int cuStreamDestroy_v2(void* handle) {
  Call c(handle);
  if (c.result) return c.result;
  if (c.stream == c.primary->legacy) return InvalidHandle;
  if (c.stream->capture) return spoil(c.stream, CaptureUnsupported);
  c.stream->closing = true;  // its thread ends once its work is done
  auto& all = c.primary->streams;
  all.erase(std::find(all.begin(), all.end(), c.stream));
  changed.notify_all();
  return Success;
}

RT_API int cuStreamSynchronize(void* handle) {
  Call c(handle);
  if (Result r = asks(c, "cuStreamSynchronize")) return r;
  wait_for(c.lock, c.stream, c.stream->submitted);
  return c.primary->broken;
}

RT_API int cuStreamQuery(void* handle) {
  Call c(handle);
  if (Result r = asks(c, "cuStreamQuery")) return r;
  kick(c.stream, c.stream->submitted);
  return c.stream->done == c.stream->submitted ? Success : NotReady;
}

RT_API int cuStreamGetFlags(void* handle, unsigned* flags) {
  Call c(handle);
  if (c.result) return c.result;
  return *flags = c.stream->flags, Success;
}

RT_API int cuStreamGetPriority(void* handle, int* priority) {
  Call c(handle);
  if (c.result) return c.result;
  return *priority = c.stream->priority, Success;
}

RT_API int cuStreamGetCtx(void* handle, Primary** p) {
  Call c(handle);
  if (c.result) return c.result;
  return *p = c.primary, Success;
}

RT_API int cuStreamWaitEvent(void* handle, Event* e, unsigned) {
  Call c(handle);
  if (c.result) return c.result;
  if (Result r = live(e)) return r;
  Stream* s = c.stream;
  if (e->captured) {
    if (!e->captured->graph) return CapturedEvent;  // that capture has ended
    if (s->capture && s->capture != e->captured) return spoil(s, CaptureMerge);
    if (s == c.primary->legacy) return spoil(e->captured->origin, CaptureImplicit);
    s->capture = e->captured;
    auto& ends = s->capture->ends[s];
    ends.insert(ends.end(), e->ends.begin(), e->ends.end());
    return Success;
  }
  if (!e->stream) return Success;
  if (s->capture) {
    say("a stream that is being captured waits for an event from outside the capture");
    return spoil(s, CaptureIsolation);
  }
  return submit(s, waiting(e->stream, e->ticket));
}

RT_API int cuLaunchHostFunc(void* handle, void (*f)(void*), void* data) {
  Call c(handle);
  if (c.result) return c.result;
  return submit(c.stream, {"cuLaunchHostFunc", [=] { return f(data), Success; }});
}

RT_API int cuEventCreate(Event** out, unsigned flags) {
  Primary* p;
  Lock lock(world);
  if (Result r = enter(&p)) return r;
  Event* e = new Event;
  e->primary = p, e->flags = flags;
  events.push_back(e);
  return *out = e, Success;
}

RT_API int cuEventDestroy_v2(Event* e) {
  Primary* p;
  Lock lock(world);
  if (Result r = enter(&p)) return r;
  if (Result r = live(e)) return r;
  events.erase(std::find(events.begin(), events.end(), e));
  delete e;
  return Success;
}

RT_API int cuEventRecord(Event* e, void* handle) {
  Call c(handle);
  if (c.result) return c.result;
  if (Result r = live(e)) return r;
  if (e->primary != c.primary) return InvalidHandle;
  Stream* s = c.stream;
  if (s->capture) {
    if (s->capture->invalid) return CaptureInvalidated;
    e->captured = s->capture;
    e->ends = s->capture->ends[s];
    return Success;
  }
  auto reached = std::make_shared<double>(0);
  if (Result r = submit(s, {"cuEventRecord", [=] { return *reached = now(), Success; }})) return r;
  e->captured = nullptr;
  e->stream = s, e->ticket = s->submitted, e->reached = reached;
  return Success;
}
RT_API int cuEventRecordWithFlags(Event* e, void* handle, unsigned) { return cuEventRecord(e, handle); }

RT_API int cuEventQuery(Event* e) {
  Primary* p;
  Lock lock(world);
  if (Result r = asks(&p, e, "cuEventQuery")) return r;
  if (!e->stream) return Success;
  kick(e->stream, e->ticket);
  return e->stream->done >= e->ticket ? Success : NotReady;
}

RT_API int cuEventSynchronize(Event* e) {
  Primary* p;
  Lock lock(world);
  if (Result r = asks(&p, e, "cuEventSynchronize")) return r;
  if (e->stream) wait_for(lock, e->stream, e->ticket);
  return p->broken;
}

RT_API int cuEventElapsedTime(float* ms, Event* begin, Event* end) {
  Primary* p;
  Lock lock(world);
  for (Event* e : {begin, end}) {
    if (Result r = asks(&p, e, "cuEventElapsedTime")) return r;
    if (!e->stream || e->flags & no_timing) return InvalidHandle;
  }
  for (Event* e : {begin, end})
    if (e->stream->done < e->ticket) return NotReady;
  return *ms = (float)((*end->reached - *begin->reached) * 1e3), Success;
}
RT_API int cuEventElapsedTime_v2(float* ms, Event* begin, Event* end) { return cuEventElapsedTime(ms, begin, end); }
