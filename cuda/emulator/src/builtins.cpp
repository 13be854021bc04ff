// A stand-in for libraries that others open by name, as NVRTC does libnvrtc-builtins.so and
// cuDNN all that it is made of. Nothing is called in them.
extern "C" __attribute__((visibility("default"))) int rt_builtins() { return 0; }
