#include "cli/files.hpp"

#include <array>
#include <cerrno>
#include <cstring>
#include <fstream>
#include <system_error>

#include "base/error.hpp"
#include "base/index.hpp"
#include "trace/hdf5/new_file.hpp"

namespace longhaul {
namespace {

/// A schedule of 3,000 devices and 3,000 microbatches takes some 220 MB.
constexpr std::size_t kLargestTextFile = std::size_t{1} << 28U;

std::string reason() { return std::strerror(errno); }

}  // namespace

std::string read_text_file(const std::filesystem::path& file) {
  if (std::filesystem::is_directory(file))
    fail("{}: cannot be read (it is a directory). Name a file.", file.string());
  errno = 0;
  std::ifstream in{file, std::ios::binary};
  if (!in) fail("{}: cannot be read ({}). Check the path.", file.string(), reason());
  std::string text;
  std::array<char, 1 << 16> buffer;
  while (in.read(buffer.data(), buffer.size()), in.gcount() > 0) {
    text.append(buffer.data(), to_size(in.gcount()));
    if (text.size() > kLargestTextFile)
      fail("{}: is longer than {} MiB (no schedule is, and it may have no end). Name another file.",
           file.string(), kLargestTextFile >> 20U);
  }
  if (in.bad()) fail("{}: cannot be read ({}). Check the disk.", file.string(), reason());
  return text;
}

void require_new_file(const std::filesystem::path& file) {
  std::error_code ignored;
  if (std::filesystem::exists(std::filesystem::symlink_status(file, ignored)))
    fail(
        "{}: not written (it exists, and results are never overwritten). Name another file or "
        "remove it.",
        file.string());
  const std::filesystem::path directory = file.has_parent_path() ? file.parent_path() : ".";
  if (!std::filesystem::is_directory(directory, ignored))
    fail("{}: cannot be created (there is no directory {}). Make it first.", file.string(),
         directory.string());
}

void write_new_file(const std::filesystem::path& file,
                    const std::function<void(std::ostream&)>& write) {
  NewFile target{file};
  errno = 0;
  std::ofstream out{target.temporary(), std::ios::binary};
  write(out);
  out.close();
  if (!out)
    throw Error{fmt::format("{}: not written ({}). Check the disk.", file.string(), reason()),
                ExitCode::run_failed};
  target.publish();
}

}  // namespace longhaul
