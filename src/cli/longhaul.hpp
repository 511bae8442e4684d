#pragma once

#include <iosfwd>
#include <span>
#include <string>
#include <vector>

namespace longhaul::cli {

/// The whole tool: `arguments` as typed after the program's name. Returns the exit code. An error
/// is one text on `err`, and then nothing was written to `out`. A reader of `out` that has gone
/// (| head) is no error.
[[nodiscard]] int run_longhaul(std::span<const std::string> arguments, std::ostream& out,
                               std::ostream& err);

/// The commands, "simulate", "trace summary", ..., in alphabetical order. Each takes --json.
[[nodiscard]] std::vector<std::string> command_names();

}  // namespace longhaul::cli
