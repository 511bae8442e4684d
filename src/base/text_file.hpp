#pragma once

#include <filesystem>
#include <string>

namespace longhaul {

/// Throws Error where the file is missing, a directory, unreadable or without end (more than 256
/// MiB).
[[nodiscard]] std::string read_text_file(const std::filesystem::path& file);

}  // namespace longhaul
