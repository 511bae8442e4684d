#pragma once

#include <cstddef>
#include <filesystem>
#include <span>

namespace longhaul {

/// A file in the making: it lies under a temporary name in the same directory until publish(), and
/// is removed if that never happens (a killed process leaves the temporary name behind, which
/// is_temporary() tells).
class NewFile {
public:
  /// Throws Error if `file` exists or its directory takes no files.
  explicit NewFile(std::filesystem::path file);
  ~NewFile();
  NewFile(const NewFile&) = delete;
  NewFile& operator=(const NewFile&) = delete;

  [[nodiscard]] const std::filesystem::path& temporary() const { return temporary_; }
  /// Gives the file its name at once; throws Error if someone else took the name meanwhile.
  void publish();

private:
  std::filesystem::path file_, temporary_;
  bool published_ = false;
};

/// Writes `bytes` as the new file `file`, complete or not at all.
void write_new_file(const std::filesystem::path& file, std::span<const std::byte> bytes);

[[nodiscard]] bool is_temporary(const std::filesystem::path& file);

}  // namespace longhaul
