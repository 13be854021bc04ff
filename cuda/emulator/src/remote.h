// Finds the emulator's driver, which is in the same directory, for its other libraries.
#pragma once
#include <dlfcn.h>

#include <string>

#include "driver.h"

namespace rt {

struct Remote {
  int (*submit)(void* stream, Op* op) = nullptr;
  bool (*within_device)(const void* at, size_t bytes) = nullptr;
  int (*current_device)() = nullptr;  // -1 if the thread has no usable context
  int (*is_capturing)(void* stream, int* status) = nullptr;
  bool found = false;
  bool capturing(void* stream) const {
    int status = 0;
    return is_capturing(stream, &status) == 0 && status != 0;
  }
};

// directory returns the directory of the library that contains symbol.
inline std::string directory(const void* symbol) {
  Dl_info info;
  if (!dladdr(symbol, &info)) return ".";
  std::string path = info.dli_fname;
  return path.substr(0, path.rfind('/'));
}

// here is a symbol of the caller's library.
inline const Remote& remote(const void* here) {
  static const Remote r = [=] {
    Remote r;
    void* h = dlopen((directory(here) + "/libcuda.so.1").c_str(), RTLD_NOW | RTLD_LOCAL);
    if (!h) return r;
    r.submit = (decltype(r.submit))dlsym(h, "rt_submit");
    r.within_device = (decltype(r.within_device))dlsym(h, "rt_within_device");
    r.current_device = (decltype(r.current_device))dlsym(h, "rt_current_device");
    r.is_capturing = (decltype(r.is_capturing))dlsym(h, "cuStreamIsCapturing");
    r.found = r.submit && r.within_device && r.current_device && r.is_capturing;
    return r;
  }();
  return r;
}

}  // namespace rt
