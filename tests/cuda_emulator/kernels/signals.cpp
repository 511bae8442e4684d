#include "kernels/signals.hpp"

#include <csignal>
#include <cstdio>
#include <mutex>

#include "device_memory/memory.hpp"
#include "on_host/block.hpp"

namespace longhaul::on_host {
namespace {

struct sigaction before;

void on_segv(int signal, siginfo_t* what, void*) {
  const auto piece = find_allocation(what->si_addr);
  if (piece && piece->pooled)
    std::fputs("cuda_on_host: memory is used before its stream has come to its allocation\n",
               stderr);
  if (in_kernel()) illegal_address();
  sigaction(signal, &before, nullptr);  // and the access is tried again
}

}  // namespace

void catch_illegal_addresses() {
#if !defined(__SANITIZE_ADDRESS__)
  static std::once_flag once;
  std::call_once(once, [] {
    struct sigaction action {};
    action.sa_sigaction = on_segv;
    action.sa_flags = SA_SIGINFO | SA_NODEFER;
    sigaction(SIGSEGV, &action, &before);
  });
#endif
}

}  // namespace longhaul::on_host
