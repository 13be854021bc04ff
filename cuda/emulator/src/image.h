// The format of a compiled module, from the emulator's NVRTC to its driver: this header, then a
// shared library of this many bytes.
#pragma once
#include <stddef.h>
#include <stdint.h>
#include <string.h>

namespace rt {

struct ImageHeader {
  char magic[8];
  uint64_t bytes, checksum;
};
constexpr char image_magic[] = "RTEMUL1";

// checksum is FNV-1a.
inline uint64_t checksum(const void* data, size_t n, uint64_t h = 0xcbf29ce484222325ull) {
  for (size_t i = 0; i < n; i++) h = (h ^ ((const unsigned char*)data)[i]) * 0x100000001b3ull;
  return h;
}

inline ImageHeader header(const void* data, size_t n) {
  ImageHeader h{};
  memcpy(h.magic, image_magic, sizeof image_magic);
  h.bytes = n, h.checksum = checksum(data, n);
  return h;
}

}  // namespace rt
