// Initialisation, devices, primary contexts and error names.
#include "driver.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

using namespace rt;

namespace rt {

// Never destroyed, because the threads of streams may outlive the destructors of the process.
std::mutex& world = *new std::mutex;
std::condition_variable& changed = *new std::condition_variable;
bool initialized = false;
int device_count = 1;

namespace {
constexpr int most_devices = 16;
Primary* primaries[most_devices];
thread_local std::vector<Primary*> current;
}  // namespace

Result enter(Primary** primary) {
  if (!initialized) return NotInitialized;
  if (current.empty() || !current.back()) return InvalidContext;
  Primary* p = current.back();
  if (p->references == 0) return ContextIsDestroyed;
  if (p->broken != Success) return p->broken;
  *primary = p;
  return Success;
}

double now() {
  timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return t.tv_sec + t.tv_nsec * 1e-9;
}

static Result device(int d) { return !initialized ? NotInitialized : d < 0 || d >= device_count ? InvalidDevice : Success; }

}  // namespace rt

RT_API int cuInit(unsigned flags) {
  Lock lock(world);
  if (flags) return InvalidValue;
  const char* n = getenv("RINGTRAIN_EMULATOR_DEVICES");
  device_count = n ? atoi(n) : 1;
  if (device_count < 1) return 100;  // CUDA_ERROR_NO_DEVICE
  if (device_count > most_devices) device_count = most_devices;
  initialized = true;
  return Success;
}

RT_API int cuDriverGetVersion(int* v) {
  const char* wish = getenv("RINGTRAIN_EMULATOR_DRIVER");
  return *v = wish ? atoi(wish) : 13000, Success;
}

RT_API int cuDeviceGetCount(int* n) {
  if (!initialized) return NotInitialized;
  return *n = device_count, Success;
}

RT_API int cuDeviceGet(int* d, int ordinal) {
  if (Result r = device(ordinal)) return r;
  return *d = ordinal, Success;
}

RT_API int cuDeviceGetName(char* name, int n, int d) {
  if (Result r = device(d)) return r;
  const char* wish = getenv("RINGTRAIN_EMULATOR_NAME");
  snprintf(name, n, "%s %d", wish ? wish : "ringtrain emulator", d);
  return Success;
}

RT_API int cuDeviceGetUuid_v2(char* uuid, int d) {
  if (Result r = device(d)) return r;
  memcpy(uuid, "ringtrain-emul-", 15);
  uuid[15] = (char)('0' + d);
  return Success;
}
RT_API int cuDeviceGetUuid(char* uuid, int d) { return cuDeviceGetUuid_v2(uuid, d); }

RT_API int cuDeviceTotalMem_v2(size_t* bytes, int d) {
  if (Result r = device(d)) return r;
  return *bytes = memory_limit(), Success;
}

RT_API int cuDeviceGetAttribute(int* v, int attribute, int d) {
  if (Result r = device(d)) return r;
  switch (attribute) {
    case 1: *v = 1024; break;                      // MAX_THREADS_PER_BLOCK
    case 2: case 3: *v = 1024; break;              // MAX_BLOCK_DIM_X, Y
    case 4: *v = 64; break;                        // MAX_BLOCK_DIM_Z
    case 5: *v = 2147483647; break;                // MAX_GRID_DIM_X
    case 6: case 7: *v = 65535; break;             // MAX_GRID_DIM_Y, Z
    case 8: *v = 48 << 10; break;                  // MAX_SHARED_MEMORY_PER_BLOCK
    case 10: *v = 32; break;                       // WARP_SIZE
    case 12: *v = 65536; break;                    // MAX_REGISTERS_PER_BLOCK
    case 13: *v = 1000000; break;                  // CLOCK_RATE
    case 15: *v = 1; break;                        // GPU_OVERLAP
    case 16: *v = 4; break;                        // MULTIPROCESSOR_COUNT
    case 19: *v = 1; break;                        // CAN_MAP_HOST_MEMORY
    case 33: *v = d + 1; break;                    // PCI_BUS_ID
    case 38: *v = 50 << 20; break;                 // L2_CACHE_SIZE
    case 39: *v = 2048; break;                     // MAX_THREADS_PER_MULTIPROCESSOR
    case 41: *v = 1; break;                        // UNIFIED_ADDRESSING
    case 75: *v = 9; break;                        // COMPUTE_CAPABILITY_MAJOR
    case 76: *v = 0; break;                        // COMPUTE_CAPABILITY_MINOR
    case 81: *v = 48 << 10; break;                 // MAX_SHARED_MEMORY_PER_MULTIPROCESSOR
    case 97: *v = 48 << 10; break;                 // MAX_SHARED_MEMORY_PER_BLOCK_OPTIN
    default: *v = 0;
  }
  return Success;
}

RT_API int cuDevicePrimaryCtxRetain(Primary** c, int d) {
  Lock lock(world);
  if (Result r = device(d)) return r;
  Primary*& p = primaries[d];
  if (!p) {
    p = new Primary;
    p->device = d;
  }
  if (p->references++ == 0) {
    p->broken = Success;
    p->legacy = new_stream(p, 0, 0);
  }
  return *c = p, Success;
}

RT_API int cuDevicePrimaryCtxRelease_v2(int d) {
  Lock lock(world);
  if (Result r = device(d)) return r;
  Primary* p = primaries[d];
  if (!p || p->references == 0) return InvalidContext;
  if (--p->references > 0) return Success;
  bool busy = false;  // with work that never ends, such as a collective whose peer is dead
  for (Stream* s : p->streams) {
    busy = busy || s->done < s->submitted;
    s->closing = true;
  }
  end_captures(p);
  unload_all(p);
  if (!busy) free_all(p->device);
  p->used = 0;
  p->streams.clear();
  changed.notify_all();
  return Success;
}
RT_API int cuDevicePrimaryCtxRelease(int d) { return cuDevicePrimaryCtxRelease_v2(d); }

RT_API int cuDevicePrimaryCtxGetState(int d, unsigned* flags, int* active) {
  Lock lock(world);
  if (Result r = device(d)) return r;
  *flags = 0, *active = primaries[d] && primaries[d]->references > 0;
  return Success;
}
RT_API int cuDevicePrimaryCtxSetFlags_v2(int d, unsigned) { return device(d); }

RT_API int cuCtxSetCurrent(Primary* p) {
  if (!initialized) return NotInitialized;
  if (!current.empty()) current.pop_back();
  if (p) current.push_back(p);
  return Success;
}

RT_API int cuCtxPushCurrent_v2(Primary* p) {
  if (!p) return InvalidContext;
  current.push_back(p);
  return Success;
}

RT_API int cuCtxPopCurrent_v2(Primary** p) {
  if (current.empty()) return InvalidContext;
  if (p) *p = current.back();
  current.pop_back();
  return Success;
}

RT_API int cuCtxGetCurrent(Primary** p) {
  if (!initialized) return NotInitialized;
  return *p = current.empty() ? nullptr : current.back(), Success;
}

RT_API int cuCtxGetDevice(int* d) {
  Primary* p;
  Lock lock(world);
  if (Result r = enter(&p)) return r;
  return *d = p->device, Success;
}

RT_API int cuCtxGetApiVersion(Primary*, unsigned* v) { return *v = 3020, Success; }

RT_API int cuCtxGetStreamPriorityRange(int* least, int* greatest) { return *least = 0, *greatest = -5, Success; }

RT_API int cuCtxSynchronize() {
  Primary* p;
  Lock lock(world);
  if (Result r = enter(&p)) return r;
  if (Result r = forbid("cuCtxSynchronize")) return r;
  wait_for_all(lock, p);
  return p->broken;
}

namespace {
struct Name {
  int code;
  const char *name, *text;
};
const Name names[] = {
    {0, "CUDA_SUCCESS", "no error"},
    {1, "CUDA_ERROR_INVALID_VALUE", "invalid argument"},
    {2, "CUDA_ERROR_OUT_OF_MEMORY", "out of memory"},
    {3, "CUDA_ERROR_NOT_INITIALIZED", "initialization error"},
    {100, "CUDA_ERROR_NO_DEVICE", "no CUDA-capable device is detected"},
    {101, "CUDA_ERROR_INVALID_DEVICE", "invalid device ordinal"},
    {200, "CUDA_ERROR_INVALID_IMAGE", "device kernel image is invalid"},
    {201, "CUDA_ERROR_INVALID_CONTEXT", "invalid device context"},
    {218, "CUDA_ERROR_INVALID_PTX", "a PTX JIT compilation failed"},
    {400, "CUDA_ERROR_INVALID_HANDLE", "invalid resource handle"},
    {401, "CUDA_ERROR_ILLEGAL_STATE", "the operation cannot be performed in the present state"},
    {500, "CUDA_ERROR_NOT_FOUND", "named symbol not found"},
    {600, "CUDA_ERROR_NOT_READY", "device not ready"},
    {700, "CUDA_ERROR_ILLEGAL_ADDRESS", "an illegal memory access was encountered"},
    {701, "CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES", "too many resources requested for launch"},
    {709, "CUDA_ERROR_CONTEXT_IS_DESTROYED", "context is destroyed"},
    {716, "CUDA_ERROR_MISALIGNED_ADDRESS", "misaligned address"},
    {719, "CUDA_ERROR_LAUNCH_FAILED", "unspecified launch failure"},
    {801, "CUDA_ERROR_NOT_SUPPORTED", "operation not supported"},
    {900, "CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED", "operation not permitted when stream is capturing"},
    {901, "CUDA_ERROR_STREAM_CAPTURE_INVALIDATED", "operation failed due to a previous error during capture"},
    {902, "CUDA_ERROR_STREAM_CAPTURE_MERGE", "operation would result in a merge of separate capture sequences"},
    {903, "CUDA_ERROR_STREAM_CAPTURE_UNMATCHED", "capture was not ended in the same stream as it began"},
    {904, "CUDA_ERROR_STREAM_CAPTURE_UNJOINED", "capturing stream has unjoined work"},
    {905, "CUDA_ERROR_STREAM_CAPTURE_ISOLATION", "dependency created on uncaptured work in another stream"},
    {906, "CUDA_ERROR_STREAM_CAPTURE_IMPLICIT", "operation would make the legacy stream depend on a capturing blocking stream"},
    {907, "CUDA_ERROR_CAPTURED_EVENT", "operation not permitted on an event last recorded in a capturing stream"},
    {908, "CUDA_ERROR_STREAM_CAPTURE_WRONG_THREAD", "attempt to terminate a thread-local capture sequence from another thread"},
    {999, "CUDA_ERROR_UNKNOWN", "unknown error"},
};
const Name* named(int code) {
  for (const Name& n : names)
    if (n.code == code) return &n;
  return nullptr;
}
}  // namespace

RT_API int cuGetErrorName(int code, const char** s) {
  const Name* n = named(code);
  return *s = n ? n->name : nullptr, n ? Success : InvalidValue;
}

RT_API int cuGetErrorString(int code, const char** s) {
  const Name* n = named(code);
  return *s = n ? n->text : nullptr, n ? Success : InvalidValue;
}
