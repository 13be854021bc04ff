// Runs kernels: one block at a time, one fiber per thread, and judges each load
// and store. Everything here belongs to who holds the lock that run takes.
#pragma once
#include <string>
#include <vector>

#include "hooks.h"

namespace rt {

// A Span is memory that kernels may touch, with the shadow in which races are
// found: one cell for each four bytes, none where shadow is null.
struct Cell {
  uint32_t stamp, thread, epoch, kind;
};
struct Span {
  uintptr_t begin, end;
  Cell* shadow;
};

struct Dim {
  unsigned x, y, z;
};

struct Loaded {
  void* library = nullptr;
  rt_module module{};
};

// open gets the module ready that a dlopened image defines; false if it is none.
bool open(void* library, Loaded* loaded);

struct Launch {
  const Loaded* loaded;
  const rt_kernel* kernel;
  Dim blocks, threads;
  std::vector<std::vector<char>> args;
};

// What a kernel did wrong; None if nothing.
enum class Fault { None, Address, Misaligned, Race, Barrier };

// run executes a launch on memory, which is sorted by address. It returns the
// first fault and says in detail what happened.
Fault run(const Launch& l, const std::vector<Span>& memory, std::string* detail);

}  // namespace rt
