#pragma once

#include <optional>
#include <string>

#include "base/program/arguments.hpp"
#include "base/program/command_words.hpp"
#include "base/version.hpp"
#include "wan_emulator/namespaces.hpp"

namespace longhaul::wan_emulator {

/// Exit code for "not run here", known to ctest, beside the codes of ExitCode.
constexpr int kSkipped = 77;

/// Reads the command line; an exit code where there is nothing more to do (--help, --version).
/// Throws Error at a slip.
[[nodiscard]] inline std::optional<int> parse_arguments(Arguments& arguments, int argc,
                                                        char** argv) {
  arguments.version(fmt::format("{} ({})", version(), git_commit()));
  const std::optional<std::string> text = parse_words(arguments, argc, argv);
  if (!text) return std::nullopt;
  fmt::print("{}", *text);
  return 0;
}

/// Prints why this cannot run here, and kSkipped; nothing where it can.
[[nodiscard]] inline std::optional<int> skipped(const char* program) {
  const std::optional<std::string> reason = why_impossible();
  if (!reason) return std::nullopt;
  fmt::print(stderr, "longhaul: {} is skipped: {}.\n", program, *reason);
  return kSkipped;
}

}  // namespace longhaul::wan_emulator
