#pragma once

#include <span>
#include <string_view>

namespace longhaul {

/// A line that works in the root of a checkout, for the help text of one command.
struct Example {
  std::string_view command;  ///< "simulate", "trace summary"; as the parser names it
  std::string_view line;
};

/// At least one for each command, in an order in which they run one after the other: a later one
/// reads files that an earlier one writes (tests/cli/parse/examples_test.cpp runs them all).
[[nodiscard]] std::span<const Example> examples();

}  // namespace longhaul
