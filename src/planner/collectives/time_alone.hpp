#pragma once

#include <vector>

#include "plan/lowering/lower.hpp"
#include "scenario/scenario.hpp"

namespace longhaul::planner {

/// What collectives of the scenario take that are played alone, each played once. Zero where no
/// link is given, which lowering refuses. `scenario` outlives it; any thread may call it.
[[nodiscard]] plan::TimeAlone time_alone(const Scenario& scenario);

/// Lower bounds on the times of a collective's members, whatever else its messages meet: the
/// longest chains of messages, each after its data and after its sender's message before it.
struct LeastTimes {
  /// By member, from its own start: until the collective has ended on every member, and on itself,
  /// though all others have begun long before.
  std::vector<Duration> to_all_ends, to_own_end;
  std::vector<Duration> arrival;  ///< by member: all has come that it gets, if all begin at 0
};

/// Does every training collective of these rows take as long, from each member's start to the end
/// on itself and on all others, as it takes alone? Then a plan in which it is one op of each member
/// ends no later than the one with its messages, where replicas are equal.
[[nodiscard]] bool collectives_take_no_less(const Schedule& schedule, const Scenario& scenario);

/// Chains begin at no more members than `kMostChains` messages allow; the others have 0 to_*.
[[nodiscard]] LeastTimes least_times(const plan::Collective& collective, const Scenario& scenario);
inline constexpr std::size_t kMostChains = 20'000'000;

}  // namespace longhaul::planner
