#pragma once

#include "planner/advice/advice.hpp"
#include "planner/layouts/layout_search.hpp"

namespace longhaul::planner {

/// What plans of a training run are compared by: time of an iteration; its cost; its cost less what
/// prompts earn in it.
#define LONGHAUL_ADVICE_GOALS(X) X(time, "time") X(cost, "cost") X(value, "value")
LONGHAUL_LISTED_ENUM(AdviceGoal, LONGHAUL_ADVICE_GOALS);

struct LayoutAdviceOptions {
  AdviceOptions searches;
  AdviceGoal goal = AdviceGoal::time;
  double dollars_per_gpu_hour = 5;  ///< of the dearest site
  /// What a GPU that stays idle for a ns is taken to earn while layouts and orders are looked for.
  double idle_nanodollars = 0;
  /// What every plan's scenario has beside its layout: TOML, and values of --set that are of it.
  std::string appended{};
  std::vector<std::string> overrides{};
  /// Iterations that take longer on so many GPUs are no plan; `searches.longest` holds for any.
  std::function<std::optional<Duration>(std::int64_t gpus)> longest_on{};
};

/// A layout whose orders, turns and overlaps were searched.
struct AdvisedLayout {
  LayoutPlan layout;  ///< under the best of its static orders: search_layouts()
  std::string text;   ///< representative_text(): where its plans are simulated
  Scenario scenario;
};

struct LayoutAdvice {
  Advice advice;                       ///< AdvisedPlan::scenario: index into `layouts`
  std::vector<AdvisedLayout> layouts;  ///< those that were tried with the other ideas
  /// No plan of the space is below, with any of the ideas; nothing: not every layout was looked at.
  std::optional<Score> bound{};
  std::int64_t points = 0, pruned = 0;  ///< layouts of the space; left out by their bounds
};

/// The joint search over layouts, datacenters and what ScenarioAdviser tries on each: from every
/// layout of the space, without those of which a bound says that they are no better, the best few
/// of each combination of ideas are searched further. A plan without the idea `layout` follows
/// rule_of_thumb(), one without `sites` uses all datacenters. Never worse than search_layouts() on
/// the space's static orders. Refused where no layout fits.
[[nodiscard]] Result<LayoutAdvice> advise_layouts(const LayoutProblem& problem,
                                                  const LayoutSpace& space,
                                                  const LayoutAdviceOptions& options = {});

}  // namespace longhaul::planner
