#pragma once

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/units.hpp"

namespace longhaul {

/// Is the standard output of a child wanted?
enum class ChildOutput { drop, keep };

/// How a child process ended.
struct ChildEnd {
  std::optional<int> exit_code;  ///< nullopt: a signal ended it
  bool timed_out = false;        ///< it ran past the limit and was killed
  std::string said;              ///< the last lines of its standard error
  std::string output;            ///< its standard output, whole; empty with ChildOutput::drop
  Duration took{};
};

/// Runs a program, always a Python of ours, without a shell and waits for it. `environment` is
/// added to ours. Kills it after `limit`. What it writes passes through nameless files, so that it
/// never waits for us. Throws Error where it cannot be started.
[[nodiscard]] ChildEnd run_child(
    const std::vector<std::string>& command,
    const std::vector<std::pair<std::string, std::string>>& environment, Duration limit,
    ChildOutput output = ChildOutput::drop);

}  // namespace longhaul
