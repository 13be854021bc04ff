// Runs kernels one block at a time, with one fiber per thread, and checks each load and store.
// run holds a lock that guards all state.
#pragma once
#include <string>
#include <vector>

#include "hooks.h"

namespace rt {

// A Span is memory that kernels may access. Its shadow, for finding races, has a cell for each four
// bytes. Without a shadow, races are not found.
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

// open initializes the module of a loaded image. It returns false if the library is not an image.
bool open(void* library, Loaded* loaded);

struct Launch {
  const Loaded* loaded;
  const rt_kernel* kernel;
  Dim blocks, threads;
  std::vector<std::vector<char>> args;
};

// A kernel's mistake.
enum class Fault { None, Address, Misaligned, Race, Barrier };

// run executes a launch. The spans are sorted by address. It returns the first fault, and sets
// detail to a description.
Fault run(const Launch& l, const std::vector<Span>& memory, std::string* detail);

}  // namespace rt
