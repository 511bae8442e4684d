#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace longhaul {

/// Those of a command's files that the HDF5 library would read.
struct ForeignFiles {
  std::vector<std::string> names;
  std::uint64_t bytes = 0;
};

/// HDF5 files by their content, whatever their names, and directories (of runs) with the HDF5 files
/// directly inside.
[[nodiscard]] ForeignFiles foreign_files(const std::vector<std::string>& files);

}  // namespace longhaul
