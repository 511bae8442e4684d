#pragma once

#include <span>
#include <string_view>

namespace longhaul::profile {

/// A file of src/profile/machines/ or src/profile/gpus/, compiled in
/// (src/profile/machine_files.cpp.in).
struct MachineFile {
  std::string_view name;  ///< without ".toml"
  std::string_view text;
};
[[nodiscard]] std::span<const MachineFile> machine_files();
[[nodiscard]] std::span<const MachineFile> gpu_files();

}  // namespace longhaul::profile
