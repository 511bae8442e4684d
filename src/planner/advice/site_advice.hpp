#pragma once

#include <deque>

#include "planner/advice/advice.hpp"
#include "planner/advice/layout_advice.hpp"
#include "planner/sites/branch_and_bound.hpp"

namespace longhaul::planner {

struct SiteAdviceOptions {
  AdviceOptions searches;
  AdviceGoal goal = AdviceGoal::time;
  double dollars_per_gpu_hour = 2;  ///< where a datacenter with GPUs has no price
  /// The scenario with its stages as a layout has them. Throws Error where it cannot be.
  std::function<Scenario(const SiteLayout&)> placed;
  /// Iterations that take longer under the layout are no plan; `searches.longest` has no effect.
  std::function<std::optional<Duration>(const SiteLayout&)> longest_on{};
  /// As many replicas as the best placement of the site planner has: where plans are compared by
  /// something that other numbers of replicas change.
  bool has_one_batch = false;
};

/// A placement whose schedules were searched.
struct AdvisedPlace {
  SiteLayout layout;
  Scenario scenario;
};

struct SiteAdvice {
  Advice advice;                    ///< AdvisedPlan::scenario: index into `places`
  std::deque<AdvisedPlace> places;  ///< that were tried with the other ideas
  /// No plan of any placement is below; nothing: methods are allowed.
  std::optional<Score> bound{};
};

/// What a replica's share of an iteration scores on a layout: iterations of layouts with different
/// numbers of replicas train differently much. With `has_one_batch` of all replicas. ns, or 10^-9
/// dollars of GPUs at their prices and of what leaves datacenters.
[[nodiscard]] Score score_of(const GpuInventory& inventory, const SiteLayout& layout, Duration time,
                             const SiteAdviceOptions& options);

/// The joint search over placements of given stages (which datacenters, how many stages in each,
/// replicas and cells) and what ScenarioAdviser tries on each: the best placements of the site
/// planner by throughput and by cost, and those that would be best if sums of gradients took no
/// time, get every schedule; the best few also the searches, overlaps and methods. Never worse than
/// any plan of algorithm 1 or of search_sites() as the simulator plays it whole, nor than advise()
/// on it. A plan without the idea `sites` has as many replicas as fit, and each datacenter in turn,
/// the largest first, all stages that it holds. Refused where no placement has a plan.
[[nodiscard]] Result<SiteAdvice> advise_sites(const GpuInventory& inventory,
                                              const SiteAdviceOptions& options);

}  // namespace longhaul::planner
