#pragma once

#include <optional>
#include <string>

#include "base/program/arguments.hpp"

namespace longhaul::wan_emulator {

/// Exit code for "not run here", known to ctest, beside the codes of ExitCode.
constexpr int kSkipped = 77;

/// Reads the command line; an exit code where there is nothing more to do (--help, --version).
/// Throws Error at a slip.
[[nodiscard]] std::optional<int> parse_arguments(Arguments& arguments, int argc, char** argv);

/// Prints why this cannot run here, and kSkipped; nothing where it can.
[[nodiscard]] std::optional<int> skipped(const char* program);

}  // namespace longhaul::wan_emulator
