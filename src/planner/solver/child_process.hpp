#pragma once

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/units.hpp"

namespace longhaul::planner {

/// How a child process ended.
struct ChildEnd {
  std::optional<int> exit_code;  ///< nullopt: a signal ended it
  bool timed_out = false;        ///< it ran past the limit and was killed
  std::string said;              ///< the last lines of its standard error
  Duration took{};
};

/// Runs a program without a shell and waits for it; its standard output is dropped. `environment`
/// is added to ours. Kills it after `limit`. Throws Error where it cannot be started.
[[nodiscard]] ChildEnd run_child(
    const std::vector<std::string>& command,
    const std::vector<std::pair<std::string, std::string>>& environment, Duration limit);

}  // namespace longhaul::planner
