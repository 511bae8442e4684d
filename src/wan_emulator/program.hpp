#pragma once

#include <functional>
#include <optional>
#include <string>

namespace CLI {
class App;
}

namespace longhaul::wan {

/// Exit code for "not run here", known to ctest, beside the codes of ExitCode.
constexpr int kSkipped = 77;

/// Runs `body` and turns its result into an exit code; Errors are printed as other programs of
/// Longhaul do.
[[nodiscard]] int run_program(const std::function<int()>& body);

/// Reads the command line; an exit code where there is nothing more to do (--help, --version).
/// Throws Error at a slip.
[[nodiscard]] std::optional<int> parse_arguments(CLI::App& app, int argc, char** argv);

/// Prints why this cannot run here, and kSkipped; nothing where it can.
[[nodiscard]] std::optional<int> skipped(const char* program);

}  // namespace longhaul::wan
