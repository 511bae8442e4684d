#include "signals.hpp"

#include <csignal>
#include <mutex>

#include "on_host/block.hpp"

namespace longhaul::on_host {
namespace {

struct sigaction before;

void on_segv(int signal, siginfo_t*, void*) {
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
