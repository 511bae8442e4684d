#pragma once

#include <optional>
#include <vector>

#include "cli/command/commands.hpp"
#include "plan/steps/collective.hpp"
#include "scenario/scenario.hpp"

namespace longhaul::cli {

/// Which algorithms of the collective are wanted.
enum class Wanted : std::uint8_t { one, all, best };

struct CollectiveRequest {
  plan::Collective collective;
  Wanted wanted = Wanted::best;
};

/// Throws Error on values that do not fit the scenario or each other.
[[nodiscard]] CollectiveRequest read_collective(const CollectiveArguments& arguments,
                                                const Scenario& scenario);

}  // namespace longhaul::cli
