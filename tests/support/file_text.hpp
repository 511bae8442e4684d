#pragma once

#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>

namespace longhaul::testing {

/// The contents of a file; empty where it cannot be read.
inline std::string file_text(const std::filesystem::path& file) {
  std::ostringstream text;
  text << std::ifstream{file}.rdbuf();
  return text.str();
}

}  // namespace longhaul::testing
