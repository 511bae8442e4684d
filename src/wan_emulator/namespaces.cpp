#include "wan_emulator/namespaces.hpp"

#include <exception>
#include <filesystem>
#include <fstream>
#include <thread>

#include <fcntl.h>
#include <linux/if.h>
#include <sched.h>
#include <sys/ioctl.h>
#include <sys/socket.h>

namespace longhaul::wan_emulator {
namespace {

/// setns and unshare change the calling thread alone, which is why a thread of its own does it.
void on_a_thread(const std::function<void()>& work) {
  std::exception_ptr problem;
  std::thread{[&] {
    try {
      work();
    } catch (...) {
      problem = std::current_exception();
    }
  }}.join();
  if (problem) std::rethrow_exception(problem);
}

void raise_loopback() {
  const FileDescriptor socket{check_call(::socket(AF_INET, SOCK_DGRAM, 0), "socket")};
  ifreq request{};
  std::strcpy(request.ifr_name, "lo");
  request.ifr_flags = IFF_UP | IFF_RUNNING;
  check_call(::ioctl(socket.get(), SIOCSIFFLAGS, &request), "raising the loopback interface");
}

std::filesystem::path setting(const std::string& key) { return "/proc/sys/net/" + key; }

}  // namespace

std::optional<std::string> why_impossible() {
  if (::geteuid() != 0) return "needs root, for network namespaces";
  const FileDescriptor tun{::open("/dev/net/tun", O_RDWR | O_CLOEXEC)};
  if (tun.get() < 0) return fmt::format("no /dev/net/tun ({})", std::strerror(errno));
  try {
    (void)NetworkNamespace::create();
  } catch (const Error& error) {
    return error.what();
  }
  return std::nullopt;
}

NetworkNamespace NetworkNamespace::create() {
  FileDescriptor handle;
  on_a_thread([&] {
    check_call(::unshare(CLONE_NEWNET), "making a network namespace");
    raise_loopback();
    handle = FileDescriptor{check_call(::open("/proc/thread-self/ns/net", O_RDONLY | O_CLOEXEC),
                                       "opening a network namespace")};
  });
  return NetworkNamespace{std::move(handle)};
}

NetworkNamespace NetworkNamespace::named(const std::string& name) {
  FileDescriptor handle{::open(("/run/netns/" + name).c_str(), O_RDONLY | O_CLOEXEC)};
  if (handle.get() < 0)
    fail("no network namespace {} ({}). Make it with ip netns add, or use scripts/wan up.", name,
         std::strerror(errno));
  NetworkNamespace result{std::move(handle)};
  result.inside(raise_loopback);
  return result;
}

void NetworkNamespace::inside(const std::function<void()>& work) const {
  on_a_thread([&] {
    check_call(::setns(handle_.get(), CLONE_NEWNET), "entering a network namespace");
    work();
  });
}

void NetworkNamespace::set(const std::string& key, const std::string& value) const {
  inside([&] {
    std::ofstream out{setting(key)};
    out << value << std::flush;
    if (!out) fail("net/{} cannot be set to {} (the kernel refuses). Leave it out.", key, value);
  });
}

std::string NetworkNamespace::get(const std::string& key) const {
  std::string value;
  inside([&] {
    std::ifstream in{setting(key)};
    std::getline(in, value);
  });
  return value;
}

}  // namespace longhaul::wan_emulator
