#include "base/version.hpp"

#include <string_view>

#include "longhaul_git_commit.h"  // written at build time by cmake/GitCommit.cmake

namespace longhaul {

const char* version() { return LONGHAUL_VERSION; }

const char* git_commit() { return LONGHAUL_GIT_COMMIT; }

std::string source_place(const char* file, unsigned line) {
  std::string_view name{file};
  constexpr std::string_view kRoot = "/src/";
  const std::size_t root = name.rfind(kRoot);
  if (root != std::string_view::npos)
    name.remove_prefix(root + kRoot.size());
  else if (const std::size_t slash = name.rfind('/'); slash != std::string_view::npos)
    name.remove_prefix(slash + 1);
  return std::string{name} + ':' + std::to_string(line);
}

std::string source_place(const std::source_location& where) {
  return source_place(where.file_name(), where.line());
}

}  // namespace longhaul
