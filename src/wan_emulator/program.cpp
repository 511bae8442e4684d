#include "wan_emulator/program.hpp"

#include "base/version.hpp"
#include "wan_emulator/namespaces.hpp"

namespace longhaul::wan_emulator {

std::optional<int> parse_arguments(Arguments& arguments, int argc, char** argv) {
  arguments.version(fmt::format("{} ({})", version(), git_commit()));
  try {
    const std::optional<std::string> text = arguments.parse(argc, argv);
    if (!text) return std::nullopt;
    fmt::print("{}", *text);
    return 0;
  } catch (const ArgumentError& problem) {
    fail("{}. See {} --help.", problem.what(), argv[0]);
  }
}

std::optional<int> skipped(const char* program) {
  const std::optional<std::string> reason = why_impossible();
  if (!reason) return std::nullopt;
  fmt::print(stderr, "longhaul: {} is skipped: {}.\n", program, *reason);
  return kSkipped;
}

}  // namespace longhaul::wan_emulator
