#pragma once

#include <functional>
#include <span>
#include <string>
#include <variant>

#include "cli/command/commands.hpp"

namespace longhaul::cli {

/// A parsed command line: a command with its options, or only a text (--help, --version).
struct Request {
  std::function<Answer(const Options&)> command;  ///< empty: print `text`
  Options options;
  std::string text;
};

/// Throws Error on unknown commands and options (with the nearest known one) and on values that do
/// not fit.
[[nodiscard]] Request read_command_line(std::span<const std::string> arguments);

}  // namespace longhaul::cli
