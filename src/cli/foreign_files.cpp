#include "cli/foreign_files.hpp"

#include <array>
#include <filesystem>
#include <fstream>
#include <string_view>

namespace longhaul {
namespace {

namespace fs = std::filesystem;

/// HDF5 looks for its signature at 0, and then at every power of two from 512 on.
bool is_hdf5(const fs::path& file) {
  constexpr std::string_view kSignature{"\x89HDF\r\n\x1a\n", 8};
  std::error_code error;
  if (!fs::is_regular_file(file, error)) return false;
  const std::uintmax_t size = fs::file_size(file, error);
  std::ifstream in{file, std::ios::binary};
  std::array<char, kSignature.size()> read{};
  for (std::uintmax_t at = 0; !error && at + read.size() <= size; at = at == 0 ? 512 : 2 * at) {
    in.seekg(static_cast<std::streamoff>(at));
    if (!in.read(read.data(), read.size())) return false;
    if (std::string_view{read.data(), read.size()} == kSignature) return true;
  }
  return false;
}

std::uint64_t size_of(const fs::path& file) {
  std::error_code error;
  const std::uintmax_t size = fs::file_size(file, error);
  return error ? 0 : size;
}

std::uint64_t bytes_inside(const fs::path& directory) {
  std::error_code error;
  std::uint64_t bytes = 0;
  fs::directory_iterator entries{directory, error};
  for (; !error && entries != fs::directory_iterator{}; entries.increment(error)) {
    if (entries->path().extension() == ".h5") bytes += size_of(entries->path());
  }
  return bytes;
}

}  // namespace

ForeignFiles foreign_files(const std::vector<std::string>& files) {
  ForeignFiles foreign;
  for (const std::string& file : files) {
    std::error_code error;
    const bool is_directory = fs::is_directory(file, error);
    if (!is_directory && !is_hdf5(file)) continue;
    foreign.names.push_back(file);
    foreign.bytes += is_directory ? bytes_inside(file) : size_of(file);
  }
  return foreign;
}

}  // namespace longhaul
