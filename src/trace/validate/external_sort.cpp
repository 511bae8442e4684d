#include "trace/validate/external_sort.hpp"

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <string>

#include <fcntl.h>
#include <unistd.h>

#include "base/error.hpp"
#include "base/index.hpp"

namespace longhaul::trace {
namespace {

[[noreturn]] void fail_spilling(int error) {
  throw Error{fmt::format("a temporary file in {} fails ({}). Set TMPDIR to a directory with more "
                          "space.",
                          std::filesystem::temp_directory_path().string(), std::strerror(error)),
              ExitCode::run_failed};
}

}  // namespace

SpillFile::SpillFile() {
  std::string name = (std::filesystem::temp_directory_path() / "longhaul-XXXXXX").string();
  fd_ = mkostemp(name.data(), O_CLOEXEC);
  if (fd_ < 0) fail_spilling(errno);
  unlink(name.c_str());
}

SpillFile::~SpillFile() { close(fd_); }

std::uint64_t SpillFile::append(std::span<const std::byte> bytes) {
  const std::uint64_t begin = size_;
  while (!bytes.empty()) {
    const ssize_t written = pwrite(fd_, bytes.data(), bytes.size(), static_cast<off_t>(size_));
    if (written < 0 && errno == EINTR) continue;
    if (written <= 0) fail_spilling(written < 0 ? errno : ENOSPC);
    size_ += static_cast<std::uint64_t>(written);
    bytes = bytes.subspan(to_size(written));
  }
  return begin;
}

void SpillFile::read(std::uint64_t offset, std::span<std::byte> bytes) const {
  while (!bytes.empty()) {
    const ssize_t got = pread(fd_, bytes.data(), bytes.size(), static_cast<off_t>(offset));
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) fail_spilling(got < 0 ? errno : EIO);
    offset += static_cast<std::uint64_t>(got);
    bytes = bytes.subspan(to_size(got));
  }
}

}  // namespace longhaul::trace
