#include "kernels/fiber.hpp"

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <utility>

#include <sys/mman.h>

#if defined(__SANITIZE_ADDRESS__)
#include <sanitizer/common_interface_defs.h>
#endif

#if !defined(__x86_64__)
#error \
    "The emulator of CUDA changes stacks on x86-64 alone. Configure with LONGHAUL_CUDA_ON_HOST=OFF."
#endif

// Registers that the System V ABI lets a called function change are changed; the stack keeps the
// others.
extern "C" void longhaul_on_host_switch(void** save, void* to);
asm(R"(
.text
.globl longhaul_on_host_switch
.type longhaul_on_host_switch, @function
longhaul_on_host_switch:
  pushq %rbp
  pushq %rbx
  pushq %r12
  pushq %r13
  pushq %r14
  pushq %r15
  movq %rsp, (%rdi)
  movq %rsi, %rsp
  popq %r15
  popq %r14
  popq %r13
  popq %r12
  popq %rbx
  popq %rbp
  ret
.size longhaul_on_host_switch, .-longhaul_on_host_switch
)");

namespace longhaul::on_host {
namespace {

constexpr std::size_t kGuard = 4096;
#if defined(__SANITIZE_ADDRESS__)
constexpr std::size_t kStack = 256U * 1024U;
#else
constexpr std::size_t kStack = 64U * 1024U;
#endif

/// r12 holds the fiber: the first switch restores it from where the constructor has put it.
extern "C" [[noreturn]] void longhaul_on_host_begin(Fiber* fiber) {
  fiber->run();
  std::abort();  // a fiber's body never returns
}

}  // namespace
}  // namespace longhaul::on_host

extern "C" void longhaul_on_host_entry();
asm(R"(
.text
.globl longhaul_on_host_entry
.type longhaul_on_host_entry, @function
longhaul_on_host_entry:
  movq %r12, %rdi
  xorl %ebp, %ebp
  callq longhaul_on_host_begin
  hlt
.size longhaul_on_host_entry, .-longhaul_on_host_entry
)");

namespace longhaul::on_host {

void switch_context(Context& from, Context& to) {
#if defined(__SANITIZE_ADDRESS__)
  __sanitizer_start_switch_fiber(&from.fake_stack_, to.bottom_, to.size_);
#endif
  longhaul_on_host_switch(&from.stack_pointer_, to.stack_pointer_);
#if defined(__SANITIZE_ADDRESS__)
  __sanitizer_finish_switch_fiber(from.fake_stack_, nullptr, nullptr);
#endif
}

Fiber::Fiber(Context& home, std::function<void()> body) : home_{home}, body_{std::move(body)} {
  void* const memory = mmap(nullptr, kStack + kGuard, PROT_READ | PROT_WRITE,
                            MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (memory == MAP_FAILED || mprotect(memory, kGuard, PROT_NONE) != 0) {
    std::perror("cuda_on_host: no memory for the stack of a thread");
    std::abort();
  }
  memory_ = static_cast<std::byte*>(memory);
  bottom_ = memory_ + kGuard;
  size_ = kStack;
  // The switch pops r15, r14, r13, r12, rbx, rbp, the entry; then the stack is as after a
  // call of the entry.
  auto* top = reinterpret_cast<std::uintptr_t*>(memory_ + kGuard + kStack) - 2;
  *--top = reinterpret_cast<std::uintptr_t>(&longhaul_on_host_entry);
  for (int i = 0; i < 2; ++i) *--top = 0;
  *--top = reinterpret_cast<std::uintptr_t>(this);
  for (int i = 0; i < 3; ++i) *--top = 0;
  stack_pointer_ = top;
}

Fiber::~Fiber() { munmap(memory_, kStack + kGuard); }

void Fiber::run() {
#if defined(__SANITIZE_ADDRESS__)
  __sanitizer_finish_switch_fiber(nullptr, &home_.bottom_, &home_.size_);
#else
  static_cast<void>(home_);
#endif
  body_();
}

}  // namespace longhaul::on_host
