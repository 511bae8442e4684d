#include "base/text_file.hpp"

#include <array>
#include <cerrno>
#include <cstring>
#include <fstream>

#include "base/error.hpp"

namespace longhaul {
namespace {

/// A schedule of 3,000 devices and 3,000 microbatches takes some 220 MB.
constexpr std::size_t kLargestTextFile = std::size_t{1} << 28U;

std::string reason() { return std::strerror(errno); }

}  // namespace

void refuse_named_pipe(const std::filesystem::path& file) {
  std::error_code error;
  const std::string name = file.string();
  if (name.starts_with("/dev/") || name.starts_with("/proc/")) return;
  if (std::filesystem::is_fifo(file, error))
    fail("{}: cannot be read (it is a named pipe, and no one may ever write to it). Name a file.",
         name);
}

std::string read_text_file(const std::filesystem::path& file) {
  refuse_named_pipe(file);
  if (std::filesystem::is_directory(file))
    fail("{}: cannot be read (it is a directory). Name a file.", file.string());
  errno = 0;
  std::ifstream in{file, std::ios::binary};
  if (!in) fail("{}: cannot be read ({}). Check the path.", file.string(), reason());
  std::string text;
  std::array<char, 1 << 16> buffer;
  while (in.read(buffer.data(), buffer.size()), in.gcount() > 0) {
    text.append(buffer.data(), static_cast<std::size_t>(in.gcount()));
    if (text.size() > kLargestTextFile)
      fail("{}: is longer than {} MiB (no schedule is, and it may have no end). Name another file.",
           file.string(), kLargestTextFile >> 20U);
  }
  if (in.bad()) fail("{}: cannot be read ({}). Check the disk.", file.string(), reason());
  return text;
}

std::string value_in_file(const std::filesystem::path& file, std::string_view key) {
  std::ifstream in{file};
  for (std::string line; std::getline(in, line);) {
    if (!line.starts_with(key)) continue;
    const std::size_t begin = line.find_first_not_of(" \t", line.find(':') + 1);
    return begin == std::string::npos ? "" : line.substr(begin);
  }
  return "";
}

}  // namespace longhaul
