#pragma once

#include <cstdint>
#include <string>

#include "plan/steps/collective.hpp"
#include "scenario/scenario.hpp"

namespace longhaul {
class Arguments;
}

namespace longhaul::report {

/// Options that say which collectives are meant, as typed; empty: the default.
struct CollectiveArguments {
  std::string kind;
  std::string bytes;
  std::string group;
  std::string algorithm;
  std::string mesh;
  std::string order;
  std::string per_dimension;
  std::string pieces;
};

/// Declares the options of `arguments`, which must outlive `command`.
void add_collective_options(Arguments& command, CollectiveArguments& arguments);

/// Which algorithms of the collective are wanted.
enum class Wanted : std::uint8_t { one, all, best };

struct CollectiveRequest {
  plan::Collective collective;
  Wanted wanted = Wanted::best;
};

/// Throws Error on values that do not fit the scenario or each other.
[[nodiscard]] CollectiveRequest read_collective(const CollectiveArguments& arguments,
                                                const Scenario& scenario);

/// "ring", "2x8 by 1,0: exchange, ring".
[[nodiscard]] std::string algorithm_text(const plan::Collective& collective);

}  // namespace longhaul::report
