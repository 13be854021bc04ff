// A stand-in for libnvrtc-builtins.so, which NVRTC opens by name. There is nothing
// that g++ needs of it.
extern "C" __attribute__((visibility("default"))) int rt_builtins() { return 0; }
