#include "planner/collectives/tie_range.hpp"

#include <algorithm>
#include <vector>

#include "base/random.hpp"
#include "base/statistics/sample.hpp"
#include "plan/lowering/lower_collective.hpp"
#include "plan/rewrite/draft.hpp"
#include "sim/simulate.hpp"

namespace longhaul::planner {
namespace {

/// A plan whose messages and ranks may be late: each rank has an op of its own that all waits for
/// which waited for nothing, and all ranks together ask for what they need first in any order.
class LatePlan {
public:
  explicit LatePlan(Plan plan) {
    const ResourceSetId nothing{static_cast<std::uint32_t>(plan.set_begin.size() - 1)};
    plan.set_begin.push_back(plan.set_begin.back());
    Op beginning;
    beginning.resources = nothing;
    plan::Draft draft = plan::thaw(plan);
    for (const Rank rank : ids<Rank>(static_cast<int>(plan.ranks.size()))) {
      const OpRange own = ops_of_rank(plan, rank);
      const LaneId lane = draft.add_lane("begin", OpKind::compute, rank);
      const auto begin = draft.insert(lane, 0, beginning);
      for (std::uint32_t i = own.first; i < own.first + own.count; ++i)
        if (plan.ops[i].after_count == 0) draft.add_after(plan::Draft::Handle{i}, begin);
    }
    plan_ = plan::freeze(draft);
    is_begin_.resize(plan_.ops.size());
    for (const Lane& lane : plan_.lanes)
      if (lane.name == "begin") is_begin_[index(lane.first)] = true;
  }

  /// The times of the ops of the plan that it was made of, with another lateness of each.
  [[nodiscard]] OpTimes times(Random& random, Duration lateness) const {
    Plan late = plan_;
    for (std::size_t i = 0; i < late.ops.size(); ++i)
      if (is_begin_[i] || late.ops[i].kind == OpKind::recv)
        late.ops[i].duration += Duration{random.between(0, lateness.count())};
    const OpTimes all = sim::simulate(late);
    OpTimes own;
    for (std::size_t i = 0; i < all.size(); ++i)
      if (!is_begin_[i]) own.push_back(all[i]);
    return own;
  }

private:
  Plan plan_;
  std::vector<bool> is_begin_;  ///< by op
};

}  // namespace

TieRange range_over_ties(const Plan& plan, const std::function<Duration(const OpTimes&)>& time_of,
                         const TieDraws& how) {
  constexpr std::size_t kMostOps = 20'000'000;
  const auto affordable = static_cast<int>(kMostOps / std::max(plan.ops.size(), std::size_t{1}));
  const int draws = std::clamp(affordable, 1, how.draws);
  const LatePlan late{plan};
  std::vector<double> times;
  for (int draw = 0; draw < draws; ++draw) {
    Random random{derived_seed(how.seed, static_cast<std::uint64_t>(draw))};
    times.push_back(static_cast<double>(time_of(late.times(random, how.lateness)).count()));
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
