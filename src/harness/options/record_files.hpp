#pragma once

#include <filesystem>
#include <string>

namespace longhaul::harness {

/// Throws Error if `directory` holds anything: nothing is overwritten. It need not exist.
void require_free(const std::filesystem::path& directory);

/// Writes a file that must not exist, whole or not at all; makes its directory.
void write_new_file(const std::filesystem::path& file, const std::string& text);

}  // namespace longhaul::harness
