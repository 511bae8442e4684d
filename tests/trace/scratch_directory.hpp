#pragma once

#include <filesystem>
#include <string>

#include <stdlib.h>  // NOLINT: mkdtemp is POSIX

namespace longhaul::testing {

/// A directory of its own that goes away with the object.
class ScratchDirectory {
public:
  ScratchDirectory() {
    std::string name = (std::filesystem::temp_directory_path() / "longhaul-XXXXXX").string();
    path_ = mkdtemp(name.data());
  }
  ~ScratchDirectory() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  ScratchDirectory(const ScratchDirectory&) = delete;
  ScratchDirectory& operator=(const ScratchDirectory&) = delete;
  [[nodiscard]] const std::filesystem::path& path() const { return path_; }

private:
  std::filesystem::path path_;
};

}  // namespace longhaul::testing
