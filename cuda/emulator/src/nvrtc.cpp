// Stands in for libnvrtc.so. It compiles shim.h and the source for the CPU, with g++ and address
// checks. It keeps images in the directory of this library.
#include <ctype.h>
#include <fcntl.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <string>
#include <vector>

#include "image.h"
#include "remote.h"

extern char** environ;

namespace {

enum { Success = 0, OutOfMemory = 1, InvalidInput = 3, InvalidProgram = 4, InvalidOption = 5, Compilation = 6, Builtins = 7, Internal = 11 };

struct Program {
  std::string source, log, image;
};

using rt::directory;

std::string read(const std::string& path) {
  std::string text;
  if (FILE* f = fopen(path.c_str(), "rb")) {
    char buffer[1 << 16];
    for (size_t n; (n = fread(buffer, 1, sizeof buffer, f));) text.append(buffer, n);
    fclose(f);
  }
  return text;
}

bool write(const std::string& path, const std::string& text) {
  FILE* f = fopen(path.c_str(), "wb");
  bool ok = f && fwrite(text.data(), 1, text.size(), f) == text.size();
  return f && fclose(f) == 0 && ok;
}

// blank replaces comments and the contents of strings with spaces.
std::string blank(std::string s) {
  for (size_t i = 0; i < s.size(); i++) {
    size_t end = std::string::npos;
    if (!s.compare(i, 2, "//")) end = s.find('\n', i);
    else if (!s.compare(i, 2, "/*")) end = s.find("*/", i + 2);
    else continue;
    if (end == std::string::npos) end = s.size();
    for (; i < end; i++)
      if (s[i] != '\n') s[i] = ' ';
  }
  return s;
}

// unbounded is the number of threads for which a block of any kernel has enough registers:
// without __launch_bounds__ the compiler may give each thread 255 of the 65536.
const std::string unbounded = "256";

// kernels returns an entry of the table for each function declared __global__ void.
std::string kernels(const std::string& source) {
  std::string entries;
  std::string s = blank(source);
  for (size_t at = 0; (at = s.find("__global__", at)) != std::string::npos;) {
    at += 10;
    size_t open = s.find_first_of("({;", at);
    if (open == std::string::npos || s[open] != '(') continue;
    std::string threads = unbounded;
    if (!s.compare(at, open - at + 1, " void __launch_bounds__(")) {
      size_t close = s.find(')', open);
      threads = s.substr(open + 1, close - open - 1);
      open = s.find('(', close);
    }
    size_t end = open;
    while (end > at && isspace(s[end - 1])) end--;
    size_t begin = end;
    while (begin > at && (isalnum(s[begin - 1]) || s[begin - 1] == '_')) begin--;
    entries += "RT_ENTRY(" + s.substr(begin, end - begin) + ", (" + threads + ")), ";
  }
  return entries;
}

int run(const std::vector<std::string>& args, const std::string& log) {
  std::vector<char*> argv;
  for (auto& a : args) argv.push_back((char*)a.c_str());
  argv.push_back(nullptr);
  posix_spawn_file_actions_t files;
  posix_spawn_file_actions_init(&files);
  posix_spawn_file_actions_addopen(&files, 2, log.c_str(), O_CREAT | O_TRUNC | O_WRONLY, 0600);
  pid_t child;
  int status = -1;
  if (posix_spawnp(&child, argv[0], &files, nullptr, argv.data(), environ)) return -1;
  while (waitpid(child, &status, 0) < 0 && errno == EINTR) {}
  posix_spawn_file_actions_destroy(&files);
  return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

// builtins opens the library of built-ins by name, like the NVRTC in CUDA 13.0's wheel. The
// loader does not search this library's directory for it.
bool builtins(std::string* log) {
  static const char name[] = "libnvrtc-builtins.so.13.0";
  if (dlopen(name, RTLD_NOW | RTLD_LOCAL)) return true;
  *log = std::string("nvrtc: error: failed to open ") + name + ".\n  Make sure that " + name + " is installed correctly.";
  return false;
}

int compile(Program* p) {
  std::string home = directory((void*)compile), text = "#include \"" + home + "/shim.h\"\n#line 1 \"kernels.cu\"\n" + p->source + "\n\nRT_TABLE(" + kernels(p->source) + ")\n";
  uint64_t key = rt::checksum(text.data(), text.size());
  char name[32];
  snprintf(name, sizeof name, "/image-%016llx", (unsigned long long)key);
  std::string kept = home + name, work = home + "/work-XXXXXX";
  p->image = read(kept);
  if (!p->image.empty()) return Success;
  if (!mkdtemp(&work[0])) return p->log = "no directory for the compiler in " + home, Internal;
  const char* compiler = getenv("CXX");
  int status = -1;
  if (write(work + "/k.cpp", text))
    status = run({compiler ? compiler : "g++", "-std=c++17", "-O2", "-fPIC", "-shared", "-fvisibility=hidden", "-fno-exceptions", "-fno-strict-aliasing",
                  "-ffp-contract=off", "-fno-tree-loop-distribute-patterns", "-fsanitize=kernel-address", "-fsanitize=alignment", "--param",
                  "asan-instrumentation-with-call-threshold=0", "--param", "asan-globals=0", "--param", "asan-stack=0", "-Wall", "-Wno-unused",
                  "-Wno-unknown-pragmas", "-Wl,-z,defs", "-o", work + "/k.so", work + "/k.cpp"},
                 work + "/log");
  p->log = read(work + "/log");
  std::string library = read(work + "/k.so");
  if (status == 0) {
    rt::ImageHeader h = rt::header(library.data(), library.size());
    p->image = std::string((char*)&h, sizeof h) + library;
    if (!write(work + "/image", p->image) || rename((work + "/image").c_str(), kept.c_str())) p->log += "the image could not be kept\n";
  }
  for (const char* f : {"/k.cpp", "/k.so", "/log", "/image"}) unlink((work + f).c_str());
  rmdir(work.c_str());
  return status == 0 ? Success : Compilation;
}

}  // namespace

RT_API int nvrtcVersion(int* major, int* minor) { return *major = 13, *minor = 0, Success; }

RT_API const char* nvrtcGetErrorString(int r) {
  switch (r) {
    case Success: return "NVRTC_SUCCESS";
    case OutOfMemory: return "NVRTC_ERROR_OUT_OF_MEMORY";
    case InvalidInput: return "NVRTC_ERROR_INVALID_INPUT";
    case InvalidProgram: return "NVRTC_ERROR_INVALID_PROGRAM";
    case InvalidOption: return "NVRTC_ERROR_INVALID_OPTION";
    case Compilation: return "NVRTC_ERROR_COMPILATION";
    case Builtins: return "NVRTC_ERROR_BUILTIN_OPERATION_FAILURE";
    default: return "NVRTC_ERROR_INTERNAL_ERROR";
  }
}

RT_API int nvrtcGetNumSupportedArchs(int* n) { return *n = 4, Success; }
RT_API int nvrtcGetSupportedArchs(int* archs) { return archs[0] = 75, archs[1] = 80, archs[2] = 90, archs[3] = 100, Success; }

RT_API int nvrtcCreateProgram(Program** out, const char* source, const char*, int headers, const char* const*, const char* const*) {
  if (!source || headers) return InvalidInput;
  return *out = new Program{source, "", ""}, Success;
}

RT_API int nvrtcDestroyProgram(Program** p) {
  if (!p || !*p) return InvalidProgram;
  delete *p;
  return *p = nullptr, Success;
}

RT_API int nvrtcCompileProgram(Program* p, int n, const char* const* options) {
  if (!p) return InvalidProgram;
  for (int i = 0; i < n; i++) {
    std::string o = options[i];
    bool known = false;
    for (const char* prefix : {"--gpu-architecture=sm_", "--gpu-architecture=compute_", "-arch=sm_", "-arch=compute_", "--std=", "-std=", "--fmad=", "-fmad=",
                               "--device-debug", "--generate-line-info", "-lineinfo", "-default-device", "--default-device", "--use_fast_math", "-D", "--define-macro="})
      known = known || o.rfind(prefix, 0) == 0;
    if (!known) return p->log = "unrecognized option " + o, InvalidOption;
  }
  return builtins(&p->log) ? compile(p) : Builtins;
}

#define RT_RESULT(Name, field, extra)                                                                \
  RT_API int nvrtcGet##Name##Size(Program* p, size_t* n) { return *n = p->field.size() + extra, Success; } \
  RT_API int nvrtcGet##Name(Program* p, char* out) {                                                 \
    memcpy(out, p->field.c_str(), p->field.size() + extra);                                          \
    return Success;                                                                                  \
  }
RT_RESULT(ProgramLog, log, 1)
RT_RESULT(CUBIN, image, 0)
RT_RESULT(PTX, image, 0)
