#pragma once

#include "planner/cluster/cluster.hpp"
#include "planner/layouts/layout_search.hpp"

namespace longhaul::planner {

/// vTrain's count of FLOPs of an iteration: 72 B s L h^2 (1 + s / 6h + V / 12 L h), recomputation
/// not counted, attention's square not halved (section V-A).
[[nodiscard]] double paper_flops(const profile::TrainingRow& model);
/// Share of the peak of all GPUs that these FLOPs are of.
[[nodiscard]] double paper_utilisation(const profile::TrainingRow& model, Duration iteration,
                                       std::int64_t gpus, double peak_flops);
/// Ours: products alone, attention causal, the head once (docs/metrics.md, MFU).
[[nodiscard]] double own_flops(const profile::TrainingRow& model);

/// A whole training run.
struct TrainingRun {
  std::optional<double> iterations{};
  /// Of the dearest site; an AWS P4d instance's, as vTrain takes it.
  double dollars_per_gpu_hour = 5;
};

struct TrainingCost {
  double dollars_per_hour = 0;
  std::optional<double> days, dollars;
};
/// `gpus`: each counted by its price (priced_gpus()).
[[nodiscard]] TrainingCost cost_of(const TrainingRun& run, Duration iteration, double gpus);

/// Iterations that so many tokens take, the last one whole.
[[nodiscard]] double iterations_of(double tokens, const profile::TrainingRow& model);

/// How fast a model runs on each number of GPUs: with t and p fixed at the least that fits and d
/// growing, as ElasticFlow is taken in vTrain's section V-B; or by the best layout.
#define LONGHAUL_RATE_PLANS(X) X(baseline, "baseline") X(best, "best")
LONGHAUL_LISTED_ENUM(RatePlans, LONGHAUL_RATE_PLANS);

/// `space` with its largest t within a node, and its least p at which a layout fits unsharded.
[[nodiscard]] LayoutSpace rule_of_thumb(const LayoutProblem& problem, LayoutSpace space);

/// Of every multiple of a node's GPUs up to `most`: the rate of the fastest layout on as many GPUs
/// or fewer. Those on which nothing fits are left out. `baseline` narrows the space by
/// rule_of_thumb(), with t of all a node's GPUs.
struct PlanRates {
  std::vector<GpuRate> rates;
  std::vector<LayoutPlan> plans;  ///< of each rate
};
[[nodiscard]] PlanRates plan_rates(const LayoutProblem& problem, LayoutSpace space, RatePlans how,
                                   int most);

/// The fastest layout on GPUs of each site; index: LayoutProblem::sites.
struct SiteRate {
  std::vector<int> gpus;
  double rate = 0;  ///< iterations a second
};
/// Of each placing of the problem (a site alone, or several with stages or replicas apart): the
/// layouts that no other with as few GPUs in the same placing beats. Of those on the same GPUs of
/// the same sites the fastest.
[[nodiscard]] std::vector<SiteRate> site_rates(const LayoutProblem& problem,
                                               const LayoutSpace& space);

}  // namespace longhaul::planner
