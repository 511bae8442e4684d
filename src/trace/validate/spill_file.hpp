#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace longhaul {

/// A file without a name in the directory for temporary files (TMPDIR): what does not fit into
/// memory waits there, and the system takes it back whatever becomes of this process.
class SpillFile {
public:
  /// Throws Error if that directory takes no files.
  SpillFile();
  ~SpillFile();
  SpillFile(const SpillFile&) = delete;
  SpillFile& operator=(const SpillFile&) = delete;

  /// Where the bytes lie from now on. Throws Error if there is no space.
  std::uint64_t append(std::span<const std::byte> bytes);
  void read(std::uint64_t offset, std::span<std::byte> bytes) const;

private:
  int fd_ = -1;
  std::uint64_t size_ = 0;
};

}  // namespace longhaul
