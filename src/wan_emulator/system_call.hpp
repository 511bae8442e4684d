#pragma once

#include <cerrno>
#include <cstring>
#include <string_view>
#include <utility>

#include <unistd.h>

#include "base/error.hpp"

namespace longhaul::wan_emulator {

/// The result of a system call, where it is not negative; otherwise an Error (exit code 3) that
/// says what failed and why.
template <typename Result>
Result check_call(Result result, std::string_view what) {
  if (result >= 0) return result;
  throw Error{fmt::format("{} failed ({}). Is this Linux, run as root, with /dev/net/tun?", what,
                          std::strerror(errno)),
              ExitCode::run_failed};
}

/// Owns one file descriptor.
class FileDescriptor {
public:
  FileDescriptor() = default;
  explicit FileDescriptor(int fd) : fd_{fd} {}
  FileDescriptor(FileDescriptor&& other) noexcept : fd_{std::exchange(other.fd_, -1)} {}
  FileDescriptor& operator=(FileDescriptor&& other) noexcept {
    std::swap(fd_, other.fd_);
    return *this;
  }
  ~FileDescriptor() {
    if (fd_ >= 0) ::close(fd_);
  }
  [[nodiscard]] int get() const { return fd_; }

private:
  int fd_ = -1;
};

}  // namespace longhaul::wan_emulator
