#include "machine.h"

#include <dlfcn.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <algorithm>
#include <mutex>

#include "fiber.h"

namespace rt {
namespace {

constexpr unsigned warp = 32;

enum State { Unstarted, Ready, AtBarrier, AtWarp, Done };

struct Thread {
  State state;
  Fiber* fiber;
  unsigned mask;    // of the warp operation that it waits for
  unsigned rounds;  // warp operations so far
};

// The values of a warp's lanes in its current operation, and in the previous one, which slow
// lanes may still be reading.
struct Exchange {
  uint64_t values[2][warp];
};

std::mutex running;
Context scheduler;
std::vector<Fiber*> all, idle;
std::vector<Thread> threads;
std::vector<Exchange> exchanges;
unsigned count, next_thread, current, finished;
uint32_t epoch;        // barriers that the block has passed
uint32_t block_stamp;  // identifies this run of a block; never 0
uint32_t launch_stamp;
uint64_t block_number;
const Launch* launch;
std::vector<void*> arguments;
const std::vector<Span>* memory;
size_t last_span;
std::vector<Cell> shared_cells;
Fault fault;
std::string explanation;

// enter_thread sets the built-in variables of the current thread.
void enter_thread() {
  const rt_module& m = launch->loaded->module;
  const Dim& d = launch->threads;
  *m.thread = {current % d.x, current / d.x % d.y, current / (d.x * d.y)};
  *m.lane = current % warp;
}

// body is the function of a fiber. It runs threads one after the other, so a kernel without
// barriers needs only one fiber.
void body() {
  for (;;) {
    while (next_thread < count) {
      Fiber* mine = threads[current].fiber;
      current = next_thread++;
      threads[current].fiber = mine;
      threads[current].state = Ready;
      enter_thread();
      launch->kernel->call(arguments.data());
      threads[current].state = Done;
      finished++;
    }
    Fiber* mine = threads[current].fiber;
    idle.push_back(mine);
    change(&mine->context, &scheduler);
  }
}

void wait(State why) {
  threads[current].state = why;
  change(&threads[current].fiber->context, &scheduler);
}

__attribute__((format(printf, 2, 3))) void fail(Fault f, const char* format, ...) {
  char text[512];
  va_list list;
  va_start(list, format);
  vsnprintf(text, sizeof text, format, list);
  va_end(list);
  fault = f;
  const rt_module& m = launch->loaded->module;
  char where[256];
  snprintf(where, sizeof where, "kernel %s, block (%u,%u,%u), thread %u of (%u,%u,%u): ", launch->kernel->name, m.block->x, m.block->y,
           m.block->z, current, launch->threads.x, launch->threads.y, launch->threads.z);
  explanation = std::string(where) + text;
  change(&threads[current].fiber->context, &scheduler);  // never returns
}

const char* verb(int kind) { return kind == RT_READ ? "reads" : kind == RT_WRITE ? "writes" : "updates"; }

// judge finds races: accesses by two threads without a barrier between them, if one is a plain
// write, or if only one is atomic. many marks a cell that several threads have read.
constexpr uint32_t many = 4, blocks_many = 8;
void judge(Cell* cell, uint32_t stamp, uint32_t me, const void* at, int kind, const char* where) {
  bool fresh = cell->stamp != stamp;
  bool same_block = cell->thread / count == me / count;
  if (!fresh && cell->thread != me) {
    bool ordered = same_block && cell->epoch < epoch && !(cell->kind & blocks_many);
    if (ordered) {
      fresh = true;
    } else {
      int before = cell->kind & 3;
      bool conflict = kind == RT_WRITE || before == RT_WRITE || (kind == RT_ATOMIC) != (before == RT_ATOMIC);
      if (conflict)
        return fail(Fault::Race, "%s %s memory at %p that thread %u of block %u %s, with no barrier between", verb(kind), where, at,
                    cell->thread % count, (unsigned)(cell->thread / count), before == RT_READ ? "has read" : "has written");
      cell->kind |= many | (same_block ? 0 : blocks_many);
      if (same_block) cell->epoch = epoch;
      return;
    }
  }
  if (fresh) {
    *cell = Cell{stamp, me, epoch, (uint32_t)kind};
    return;
  }
  if (cell->epoch < epoch && same_block && where[0] == 's') {  // a barrier orders earlier accesses
    *cell = Cell{stamp, me, epoch, (uint32_t)kind};
    return;
  }
  bool others = cell->kind & many && (cell->epoch == epoch || cell->kind & blocks_many);
  if (kind == RT_WRITE && others) return fail(Fault::Race, "writes %s memory at %p that other threads have read, with no barrier between", where, at);
  uint32_t strongest = std::max(cell->kind & 3, (uint32_t)kind);
  if (cell->kind & 3 && kind) strongest = (cell->kind & 3) == RT_WRITE ? (uint32_t)RT_WRITE : (uint32_t)kind;
  uint32_t readers = others ? cell->kind & (many | blocks_many) : 0;
  *cell = Cell{stamp, me, kind == RT_READ && strongest ? cell->epoch : epoch, strongest | readers};
}

const Span* find(uintptr_t at) {
  const std::vector<Span>& m = *memory;
  if (last_span < m.size() && at >= m[last_span].begin && at < m[last_span].end) return &m[last_span];
  auto after = std::upper_bound(m.begin(), m.end(), at, [](uintptr_t a, const Span& s) { return a < s.begin; });
  if (after == m.begin()) return nullptr;
  last_span = after - m.begin() - 1;
  return at < m[last_span].end ? &m[last_span] : nullptr;
}

void on_access(const void* address, size_t size, int kind) {
  uintptr_t at = (uintptr_t)address;
  const rt_module& m = launch->loaded->module;
  if (threads[current].fiber->holds(at)) return;
  if (size <= 16 && at % size) return fail(Fault::Misaligned, "%s %zu bytes at %p, which is no multiple of that", verb(kind), size, address);
  Cell* cell;
  uint32_t stamp, me;
  const char* where;
  if (at >= (uintptr_t)m.shared_begin && at < (uintptr_t)m.shared_end) {
    if (at + size > (uintptr_t)m.shared_end) return fail(Fault::Address, "%s past shared memory at %p", verb(kind), address);
    cell = &shared_cells[(at - (uintptr_t)m.shared_begin) / 4];
    stamp = block_stamp, me = current, where = "shared";
  } else if (at >= (uintptr_t)m.image_begin && at < (uintptr_t)m.image_end) {
    return;  // the compiler's constants and tables
  } else {
    const Span* s = find(at);
    if (!s || at + size > s->end) {
      const Span* near = last_span < memory->size() ? &(*memory)[last_span] : nullptr;
      return fail(Fault::Address, "%s %zu bytes at %p, outside of all memory; the nearest below has %zu bytes and ends %zd bytes before it", verb(kind),
                  size, address, near ? (size_t)(near->end - near->begin) : 0, near ? (ssize_t)(at - near->end) : 0);
    }
    if (!s->shadow) return;
    cell = s->shadow + (at - s->begin) / 4;
    stamp = launch_stamp, me = (uint32_t)(block_number * count + current), where = "global";
  }
  if (size < 4) return;  // neighbours share a cell, so this could be a false alarm
  for (size_t i = 0; i < size / 4; i++) judge(cell + i, stamp, me, (const char*)address + 4 * i, kind, where);
}

// The compiler may split a wide access, so it checks the alignment itself and calls this.
void on_misaligned(const void* at) { fail(Fault::Misaligned, "uses %p as the address of something wider than its alignment", at); }

void on_barrier() { wait(AtBarrier); }

const uint64_t* on_warp(unsigned mask, uint64_t value) {
  unsigned lane = current % warp;
  if (!(mask >> lane & 1)) {
    fail(Fault::Barrier, "lane %u is in a warp operation whose mask %#x leaves it out", lane, mask);
  }
  Thread& me = threads[current];
  Exchange& x = exchanges[current / warp];
  unsigned slot = me.rounds++ & 1;
  x.values[slot][lane] = value;
  me.mask = mask;
  wait(AtWarp);
  return x.values[slot];
}

const rt_hooks hooks = {on_access, on_misaligned, on_barrier, on_warp};

void resume(unsigned t) {
  current = t;
  enter_thread();
  change(&scheduler, &threads[t].fiber->context);
}

void start_threads() {
  while (next_thread < count && fault == Fault::None) {
    if (idle.empty()) {
      all.push_back(new Fiber);
      all.back()->reset(body);
      idle.push_back(all.back());
    }
    Fiber* f = idle.back();
    idle.pop_back();
    current = next_thread;
    threads[current].fiber = f;
    change(&scheduler, &f->context);
  }
}

// release resumes warps whose operation is complete, and the block if all its threads are at a
// barrier. It returns false if there are none.
bool release() {
  bool any = false;
  for (unsigned w = 0; w * warp < count; w++) {
    unsigned lanes = std::min(warp, count - w * warp), present = lanes == warp ? ~0u : (1u << lanes) - 1;
    Thread* t = &threads[w * warp];
    for (unsigned i = 0; i < lanes; i++) {
      if (t[i].state != AtWarp) continue;
      unsigned mask = t[i].mask & present;
      bool complete = true;
      for (unsigned j = 0; j < lanes; j++)
        if (mask >> j & 1 && (t[j].state != AtWarp || (t[j].mask & present) != mask)) complete = false;
      if (!complete) continue;
      for (unsigned j = 0; j < lanes; j++)
        if (mask >> j & 1) t[j].state = Ready;
      any = true;
    }
  }
  if (any) return true;
  for (unsigned i = 0; i < count; i++)
    if (threads[i].state != AtBarrier) return false;
  for (unsigned i = 0; i < count; i++) threads[i].state = Ready;
  epoch++;
  return true;
}

void run_block() {
  const rt_module& m = launch->loaded->module;
  block_stamp++;
  epoch = 0;
  next_thread = finished = 0;
  for (unsigned i = 0; i < count; i++) threads[i] = Thread{Unstarted, nullptr, 0, 0};
  // A block must not rely on the initial contents of shared memory, so they are NaNs.
  for (char* p = m.shared_begin; p && p + 4 <= m.shared_end; p += 4) memcpy(p, "\xa5\xa5\xc5\xff", 4);
  start_threads();
  while (finished < count && fault == Fault::None) {
    for (unsigned i = 0; i < count && fault == Fault::None; i++)
      if (threads[i].state == Ready) resume(i);
    if (finished == count || fault != Fault::None) break;
    if (!release()) {
      bool ready = false;
      for (unsigned i = 0; i < count; i++) ready = ready || threads[i].state == Ready;
      if (ready) continue;
      unsigned barrier = 0, shuffle = 0;
      for (unsigned i = 0; i < count; i++) barrier += threads[i].state == AtBarrier, shuffle += threads[i].state == AtWarp;
      fault = Fault::Barrier;
      explanation = std::string("kernel ") + launch->kernel->name + ": of " + std::to_string(count) + " threads of a block " +
                    std::to_string(barrier) + " wait at a barrier, " + std::to_string(shuffle) + " in a warp operation, and " +
                    std::to_string(finished) + " have ended: the rest will never come";
    }
  }
}

}  // namespace

bool open(void* library, Loaded* loaded) {
  auto enter = (void (*)(const rt_hooks*, rt_module*))dlsym(library, "rt_open");
  if (!enter) return false;
  loaded->library = library;
  enter(&hooks, &loaded->module);
  return true;
}

Fault run(const Launch& l, const std::vector<Span>& spans, std::string* detail) {
  std::lock_guard<std::mutex> lock(running);
  const rt_module& m = l.loaded->module;
  launch = &l;
  memory = &spans;
  last_span = 0;
  fault = Fault::None;
  launch_stamp++;
  count = l.threads.x * l.threads.y * l.threads.z;
  threads.resize(count);
  exchanges.resize((count + warp - 1) / warp);
  shared_cells.resize(std::max(shared_cells.size(), (size_t)(m.shared_end - m.shared_begin) / 4 + 1));
  arguments.clear();
  for (auto& a : l.args) arguments.push_back((void*)a.data());
  *m.threads = {l.threads.x, l.threads.y, l.threads.z};
  *m.blocks = {l.blocks.x, l.blocks.y, l.blocks.z};
  block_number = 0;
  for (unsigned z = 0; z < l.blocks.z; z++)
    for (unsigned y = 0; y < l.blocks.y; y++)
      for (unsigned x = 0; x < l.blocks.x && fault == Fault::None; x++, block_number++) {
        *m.block = {x, y, z};
        run_block();
      }
  if (fault != Fault::None) {  // fibers are suspended in the middle of threads
    idle.clear();
    for (Fiber* f : all) {
      f->reset(body);
      idle.push_back(f);
    }
    *detail = explanation;
  }
  return fault;
}

}  // namespace rt
