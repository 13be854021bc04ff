// A fiber has a stack and runs until it switches to another.
#pragma once
#include <stddef.h>
#include <stdint.h>
#include <sys/mman.h>

#if !defined(__x86_64__)
#include <ucontext.h>
#endif

namespace rt {

constexpr size_t stack_bytes = 128 << 10;

#if defined(__x86_64__)
// Twelve instructions. The switch of ucontext makes a system call.
struct Context {
  void* sp;
};
extern "C" void rt_switch(Context* from, Context* to);
__asm__(
    ".text\n.globl rt_switch\n.hidden rt_switch\nrt_switch:\n"
    "push %rbp\npush %rbx\npush %r12\npush %r13\npush %r14\npush %r15\n"
    "mov %rsp,(%rdi)\nmov (%rsi),%rsp\n"
    "pop %r15\npop %r14\npop %r13\npop %r12\npop %rbx\npop %rbp\nret\n");
inline void prepare(Context* c, char* stack, void (*entry)()) {
  void** sp = (void**)(((uintptr_t)stack + stack_bytes) & ~(uintptr_t)15);
  *--sp = nullptr;
  *--sp = (void*)entry;
  c->sp = sp - 6;
}
inline void change(Context* from, Context* to) { rt_switch(from, to); }
#else
struct Context {
  ucontext_t c;
};
inline void prepare(Context* c, char* stack, void (*entry)()) {
  getcontext(&c->c);
  c->c.uc_stack.ss_sp = stack;
  c->c.uc_stack.ss_size = stack_bytes;
  c->c.uc_link = nullptr;
  makecontext(&c->c, entry, 0);
}
inline void change(Context* from, Context* to) { swapcontext(&from->c, &to->c); }
#endif

struct Fiber {
  Context context{};
  char* stack = nullptr;

  void reset(void (*entry)()) {
    if (!stack) stack = (char*)mmap(nullptr, stack_bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    prepare(&context, stack, entry);
  }
  bool holds(uintptr_t at) const { return at - (uintptr_t)stack < stack_bytes; }
};

}  // namespace rt
