#include "planner/collectives/tie_range.hpp"

#include <algorithm>
#include <vector>

#include "base/random.hpp"
#include "base/statistics/sample.hpp"
#include "plan/lowering/lower_collective.hpp"
#include "sim/simulate.hpp"

namespace longhaul::planner {

TieRange range_over_ties(const Plan& plan, const std::function<Duration(const OpTimes&)>& time_of,
                         const TieDraws& how) {
  constexpr std::size_t kMostOps = 20'000'000;
  const auto affordable = static_cast<int>(kMostOps / std::max(plan.ops.size(), std::size_t{1}));
  const int draws = std::clamp(affordable, 1, how.draws);
  std::vector<double> times;
  Plan late = plan;
  for (int draw = 0; draw < draws; ++draw) {
    Random random{derived_seed(how.seed, static_cast<std::uint64_t>(draw))};
    for (std::size_t i = 0; i < plan.ops.size(); ++i)
      if (plan.ops[i].kind == OpKind::recv)
        late.ops[i].duration =
            plan.ops[i].duration + Duration{random.between(0, how.lateness.count())};
    times.push_back(static_cast<double>(time_of(sim::simulate(late)).count()));
  }
  std::ranges::sort(times);
  const auto share = [&](double of) {
    return Duration{static_cast<std::int64_t>(quantile(times, of))};
  };
  return {share(0.1), share(0.5), share(0.9), draws};
}

Result<TieRange> range_over_ties(const plan::Collective& collective, const Scenario& scenario,
                                 const TieDraws& how) {
  const Result<Plan> plan = plan::lower_collective(collective, scenario);
  if (!plan) return plan.refusal();
  const auto end = [](const OpTimes& times) {
    return std::ranges::max(times, {}, &OpTime::end).end;
  };
  return range_over_ties(*plan, end, how);
}

}  // namespace longhaul::planner
