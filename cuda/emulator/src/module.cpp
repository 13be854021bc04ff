// Modules, functions and launches.
#include <dlfcn.h>
#include <stdio.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <fstream>
#include <iterator>
#include <set>

#include "driver.h"
#include "image.h"

using namespace rt;

namespace rt {
namespace {

struct Module;
struct Function {
  Module* module;
  const rt_kernel* kernel;
};
struct Module {
  Primary* primary;
  Loaded loaded;
  std::vector<std::unique_ptr<Function>> functions;
};

std::vector<Module*>& modules = *new std::vector<Module*>;

constexpr size_t largest_image = (size_t)1 << 30;
constexpr unsigned most_threads = 1024;
constexpr int nvrtc_version = 13000;  // version of the emulator's NVRTC
constexpr unsigned most_shared = 48 << 10;

// is_ptx distinguishes PTX, which is text with a version, from images, which have a magic number.
bool is_ptx(const char* image) {
  return (!strncmp(image, "//", 2) || !strncmp(image, ".version", 8)) && strstr(image, "\n.version ");
}

// entries returns the names of the kernels in PTX.
std::set<std::string> entries(const std::string& ptx) {
  std::set<std::string> names;
  static const char entry[] = ".visible .entry ";
  for (size_t at = 0; (at = ptx.find(entry, at)) != std::string::npos;) {
    at += sizeof entry - 1;
    names.insert(ptx.substr(at, ptx.find_first_of("( \n", at) - at));
  }
  return names;
}

Result load(const void* image, Module** out, std::string* why);

// load_ptx loads the image that RINGTRAIN_EMULATOR_PTX names instead of PTX with the same
// kernels, because the emulator cannot compile PTX.
Result load_ptx(const std::string& ptx, Module** out, std::string* why) {
  const char* path = getenv("RINGTRAIN_EMULATOR_PTX");
  if (!path) return *why = "the emulator compiles no PTX, and RINGTRAIN_EMULATOR_PTX names no image in place of it", InvalidPtx;
  std::ifstream file(path, std::ios::binary);
  std::string twin{std::istreambuf_iterator<char>(file), {}};
  if (twin.size() < sizeof(ImageHeader)) return *why = std::string("no image in ") + path, InvalidImage;
  if (Result r = load(twin.data(), out, why)) return r;
  std::set<std::string> have;
  for (int i = 0; i < (*out)->loaded.module.count; i++) have.insert((*out)->loaded.module.kernels[i].name);
  if (have == entries(ptx)) return Success;
  delete *out;
  return *why = "the PTX and the image in place of it have different kernels", InvalidPtx;
}

Result load(const void* image, Module** out, std::string* why) {
  if (is_ptx((const char*)image)) return load_ptx((const char*)image, out, why);
  ImageHeader h;
  memcpy(&h, image, sizeof h);
  if (memcmp(h.magic, image_magic, sizeof image_magic)) return *why = "not an image of the emulator's NVRTC", InvalidImage;
  const char* data = (const char*)image + sizeof h;
  if (h.bytes > largest_image || checksum(data, h.bytes) != h.checksum) return *why = "the image is damaged: its checksum does not fit", InvalidImage;
  int fd = memfd_create("ringtrain-kernels", MFD_CLOEXEC);
  if (fd < 0 || write(fd, data, h.bytes) != (ssize_t)h.bytes) return OutOfMemory;
  char path[64];
  snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
  void* library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
  close(fd);
  auto m = std::make_unique<Module>();
  if (!library || !open(library, &m->loaded)) {
    const char* reason = dlerror();
    return *why = reason ? reason : "no table of kernels", InvalidImage;
  }
  *out = m.release();
  return Success;
}

// The options that name a buffer for errors, and its size.
constexpr int error_log = 5, error_log_bytes = 6;

void log(const std::string& text, unsigned n, const int* options, void** values) {
  char* buffer = nullptr;
  void** room = nullptr;
  for (unsigned i = 0; i < n; i++) {
    if (options[i] == error_log) buffer = (char*)values[i];
    if (options[i] == error_log_bytes) room = &values[i];
  }
  if (buffer && room && *room) snprintf(buffer, (size_t)*room, "%s", text.c_str());
}

Module* owner(Function* f) {
  for (Module* m : modules)
    for (auto& g : m->functions)
      if (g.get() == f) return m;
  return nullptr;
}

Result check(const Launch& l, unsigned dynamic, Function* f) {
  const Dim &b = l.blocks, &t = l.threads;
  bool empty = !b.x || !b.y || !b.z || !t.x || !t.y || !t.z;
  if (empty || b.x > 2147483647u || b.y > 65535 || b.z > 65535 || t.z > 64 || (uint64_t)t.x * t.y * t.z > most_threads) {
    say("launch of %s with blocks (%u,%u,%u) of threads (%u,%u,%u)", f->kernel->name, b.x, b.y, b.z, t.x, t.y, t.z);
    return InvalidValue;
  }
  if (t.x * t.y * t.z > f->kernel->threads) {
    say("launch of %s with blocks of (%u,%u,%u) threads: only %u are sure to have registers, by its __launch_bounds__", f->kernel->name, t.x, t.y, t.z, f->kernel->threads);
    return LaunchOutOfResources;
  }
  return dynamic > most_shared ? LaunchOutOfResources : Success;
}

Result execute(const Launch& l, int device) {
  std::string detail;
  Fault f = run(l, *spans(device), &detail);
  if (f == Fault::None) return Success;
  say("%s", detail.c_str());
  return f == Fault::Address ? IllegalAddress : f == Fault::Misaligned ? MisalignedAddress : LaunchFailed;
}

Result launch(Function* f, Dim blocks, Dim threads, unsigned dynamic, void* handle, void** args, void** extra) {
  Primary* p;
  Stream* s;
  Lock lock(world);
  if (Result r = enter(&p)) return r;
  if (Result r = lookup(handle, p, &s)) return r;
  Module* m = owner(f);
  if (!m || m->primary != p) return InvalidHandle;
  if (extra || (!args && f->kernel->count)) return InvalidValue;
  auto l = std::make_shared<Launch>(Launch{&m->loaded, f->kernel, blocks, threads, {}});
  if (Result r = check(*l, dynamic, f)) return r;
  for (int i = 0; i < f->kernel->count; i++) l->args.emplace_back((char*)args[i], (char*)args[i] + f->kernel->sizes[i]);
  int device = p->device;
  return submit(s, {f->kernel->name, [=] { return execute(*l, device); }});
}

}  // namespace

void unload_all(Primary* p) {
  modules.erase(std::remove_if(modules.begin(), modules.end(), [=](Module* m) { return m->primary == p; }), modules.end());
}

}  // namespace rt

RT_API int cuDriverGetVersion(int* v);

RT_API int cuModuleLoadDataEx(Module** out, const void* image, unsigned n, const int* options, void** values) {
  Primary* p;
  Lock lock(world);
  if (Result r = enter(&p)) return r;
  if (Result r = forbid("cuModuleLoadData")) return r;
  std::string why;
  int version;
  if (cuDriverGetVersion(&version), version < nvrtc_version && !is_ptx((const char*)image)) {
    log("the image is of a newer CUDA than the driver", n, options, values);
    return InvalidImage;
  }
  if (Result r = load(image, out, &why)) {
    log(why, n, options, values);
    return r;
  }
  (*out)->primary = p;
  modules.push_back(*out);
  return Success;
}
RT_API int cuModuleLoadData(Module** out, const void* image) { return cuModuleLoadDataEx(out, image, 0, nullptr, nullptr); }
RT_API int cuModuleLoadFatBinary(Module** out, const void* image) { return cuModuleLoadData(out, image); }

RT_API int cuModuleUnload(Module* m) {
  Primary* p;
  Lock lock(world);
  if (Result r = enter(&p)) return r;
  auto i = std::find(modules.begin(), modules.end(), m);
  if (i == modules.end()) return InvalidHandle;
  if (Result r = forbid("cuModuleUnload")) return r;
  wait_for_all(lock, p);
  modules.erase(i);  // the library stays loaded, because graphs may still use its kernels
  return Success;
}

RT_API int cuModuleGetFunction(Function** out, Module* m, const char* name) {
  Primary* p;
  Lock lock(world);
  if (Result r = enter(&p)) return r;
  if (std::find(modules.begin(), modules.end(), m) == modules.end()) return InvalidHandle;
  for (int i = 0; i < m->loaded.module.count; i++) {
    const rt_kernel* k = &m->loaded.module.kernels[i];
    if (strcmp(k->name, name)) continue;
    m->functions.emplace_back(new Function{m, k});
    return *out = m->functions.back().get(), Success;
  }
  return NotFound;
}

RT_API int cuModuleGetGlobal_v2(void**, size_t*, Module*, const char*) { return NotFound; }

RT_API int cuFuncGetAttribute(int* v, int attribute, Function* f) {
  Lock lock(world);
  Module* m = owner(f);
  if (!m) return InvalidHandle;
  switch (attribute) {
    case 0: *v = (int)f->kernel->threads; break;                                                     // MAX_THREADS_PER_BLOCK
    case 1: *v = (int)(m->loaded.module.shared_end - m->loaded.module.shared_begin); break;          // SHARED_SIZE_BYTES, of the module
    case 4: *v = 32; break;                                                                          // NUM_REGS
    case 8: *v = most_shared; break;                                                                 // MAX_DYNAMIC_SHARED_SIZE_BYTES
    default: *v = 0;
  }
  return Success;
}

RT_API int cuOccupancyMaxActiveBlocksPerMultiprocessor(int* n, Function* f, int threads, size_t) {
  Lock lock(world);
  if (!owner(f) || threads < 1) return InvalidValue;
  return *n = std::max(1, 2048 / threads), Success;
}

RT_API int cuLaunchKernel(Function* f, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by, unsigned bz, unsigned dynamic,
                          void* stream, void** args, void** extra) {
  return launch(f, {gx, gy, gz}, {bx, by, bz}, dynamic, stream, args, extra);
}

// CUlaunchConfig. The attributes only affect speed.
struct Config {
  unsigned gx, gy, gz, bx, by, bz, dynamic;
  void *stream, *attributes;
  unsigned count;
};
RT_API int cuLaunchKernelEx(const Config* c, Function* f, void** args, void** extra) {
  return launch(f, {c->gx, c->gy, c->gz}, {c->bx, c->by, c->bz}, c->dynamic, c->stream, args, extra);
}

// Functions for the emulator's other libraries, see remote.h.
RT_API int rt_submit(void* handle, Op* op) {
  Primary* p;
  Stream* s;
  Lock lock(world);
  if (Result r = enter(&p)) return r;
  if (Result r = lookup(handle, p, &s)) return r;
  return submit(s, std::move(*op));
}
RT_API bool rt_within_device(const void* at, size_t bytes) { return within_device(at, bytes); }
RT_API int rt_current_device() {
  Primary* p;
  Lock lock(world);
  return enter(&p) ? -1 : p->device;
}
