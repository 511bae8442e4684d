#pragma once

#include <cstdint>
#include <functional>

#include "base/result.hpp"
#include "plan/plan.hpp"
#include "scenario/scenario.hpp"
#include "trace/timeline/timeline.hpp"

namespace longhaul::planner {

/// How ties are broken: each rank begins and each message arrives later by a time drawn evenly from
/// 0 to `lateness`, as they do where ranks are late. Of a plan of more than 2 x 10^5 ops fewer are
/// drawn: 2 x 10^7 ops in all.
struct TieDraws {
  int draws = 100;
  Duration lateness{1'000};
  std::uint64_t seed = 1;
};

/// What a plan takes where messages that ask for a resource in the same instant come in any order.
/// The exact model serves them by op id, ranks as they happen to ask.
struct TieRange {
  Duration low{}, median{}, high{};  ///< 10th, 50th and 90th percentile of the draws
  int draws = 0;
  friend bool operator==(const TieRange&, const TieRange&) = default;
};

/// Simulates the plan once a draw, and sums each up by `time_of`. The plan must be sound; draws at
/// least 1.
[[nodiscard]] TieRange range_over_ties(const Plan& plan,
                                       const std::function<Duration(const OpTimes&)>& time_of,
                                       const TieDraws& how = {});
/// Of a collective alone, until its last message has arrived. Refused where links are missing.
[[nodiscard]] Result<TieRange> range_over_ties(const plan::Collective& collective,
                                               const Scenario& scenario, const TieDraws& how);

}  // namespace longhaul::planner
