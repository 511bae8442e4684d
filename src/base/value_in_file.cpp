#include "base/value_in_file.hpp"

#include <fstream>

namespace longhaul {

std::string value_in_file(const std::filesystem::path& file, std::string_view key) {
  std::ifstream in{file};
  for (std::string line; std::getline(in, line);) {
    if (!line.starts_with(key)) continue;
    const std::size_t begin = line.find_first_not_of(" \t", line.find(':') + 1);
    return begin == std::string::npos ? "" : line.substr(begin);
  }
  return "";
}

}  // namespace longhaul
