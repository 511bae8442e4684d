#pragma once

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "planner/layouts/order_time.hpp"

namespace longhaul::planner {

/// The values that each part of a layout may have; all combinations are points of the space.
struct LayoutSpace {
  std::vector<int> tensor{1}, data{1}, pipeline{1};
  std::vector<int> micro_batch{1};
  std::vector<int> chunks{2};  ///< of interleaved-1f1b
  std::vector<LayoutOrder> orders{LayoutOrder::one_f_one_b};
  std::vector<RecomputeKind> recompute{RecomputeKind::full};
  std::vector<profile::ShardingKind> sharding{profile::ShardingKind::none};
  /// Numbers of GPUs that a layout may have; empty: all.
  std::function<bool(std::int64_t)> has_gpus{};
};

/// A layout with what it takes.
struct LayoutPlan {
  Layout layout;
  Duration iteration{};
  Duration low{}, high{};  ///< 90% of measured iterations lie between: add_intervals()
  Duration bound{};        ///< least_makespan()
  Bytes memory;
  double priced_gpus = 0;                      ///< planner::priced_gpus()
  std::shared_ptr<const Schedule> schedule{};  ///< of an order that knows the links
  [[nodiscard]] double gpu_time() const {
    return static_cast<double>(iteration.count()) * static_cast<double>(layout.gpus());
  }
  /// GPU time, each GPU counted by its price.
  [[nodiscard]] double cost() const { return static_cast<double>(iteration.count()) * priced_gpus; }
};

/// What plans of a front spend beside time: money, so with one price GPU time; or GPUs.
#define LONGHAUL_LAYOUT_GOALS(X) X(cost, "cost") X(gpus, "gpus")
LONGHAUL_LISTED_ENUM(LayoutGoal, LONGHAUL_LAYOUT_GOALS);

struct LayoutSearchOptions {
  LayoutGoal second = LayoutGoal::cost;
  bool exhaustive = false;            ///< evaluates every layout that fits
  bool keeps_all = false;             ///< plans: all that were evaluated, not the best alone
  std::optional<Duration> longest{};  ///< iterations that take longer are no plan
  bool keeps_late = false;            ///< among all also late ones that no other late one beats
  /// Asked now and then; true ends the search with what it has: at least the eight layouts of the
  /// least bound of cost among those that it has looked at.
  std::function<bool()> is_stopped{};
};

/// What became of the points of a space.
struct LayoutSearch {
  std::int64_t points = 0;
  std::int64_t feasible = 0;                    ///< can be run, and fit
  std::map<std::string, std::int64_t> refused;  ///< by reason
  std::int64_t evaluated = 0;
  std::map<std::string, std::int64_t> pruned;  ///< by reason
  std::int64_t blocks = 0;                     ///< played
  /// Those that no other layout beats in time and the second goal both (of equal ones the least),
  /// fastest first: with cost the best by time, by cost and the cheapest within any time are among
  /// them, and with one price the best by utilisation; with GPUs the fastest on any number of them.
  /// With `keeps_all` all that were evaluated, by layout.
  std::vector<LayoutPlan> plans;
  /// How far the shortest and the thriftiest plan may be above the best, where the search was
  /// stopped; 0: they are the best. nullopt: not known, for it did not look at every point.
  std::optional<double> gap_time = 0, gap_cost = 0;
  /// The least `bound` and the least cost by it of what fits and may be in time, of any order:
  /// least_of_any_order(), whether it was evaluated or not; nullopt: there is none. Layouts, not
  /// plans: `bound` is below what any order takes, and `iteration` repeats it.
  std::optional<LayoutPlan> soonest{}, thriftiest{};
};

/// Finds the front of the space. Orders that know the links are made for those of each layout that
/// is evaluated; where none is defined the layout counts as pruned. Layouts whose bound is beaten
/// in time and cost by one that was evaluated are left out: the front is the exhaustive one's.
/// Memory is asked first.
[[nodiscard]] LayoutSearch search_layouts(const LayoutProblem& problem, const LayoutSpace& space,
                                          const LayoutSearchOptions& options = {});

/// Can a layout of the space be run, and does it fit?
[[nodiscard]] bool any_layout_fits(const LayoutProblem& problem, const LayoutSpace& space);

/// Sets `low` and `high` of plans: by the problem's calibration, otherwise by the spreads of the
/// parameters and the model's own error, as predict() has them (of more than 100 plans by their
/// effects on the bound).
void add_intervals(const LayoutProblem& problem, std::vector<LayoutPlan>& plans);

/// A plan's scenario as TOML text, which every command and bench_pipeline take: its ranks, costs,
/// links and memory. Under the plan's order it has the plan's makespan, to the nanosecond; `best`
/// is read from the plan's schedule, NAME.csv beside it.
[[nodiscard]] std::string scenario_text(const LayoutProblem& problem, const LayoutPlan& plan,
                                        const std::string& name);

/// The same of what its ranks repeat, for searches over orders and overlaps: one rank of each
/// tensor group, and of the replicas `cell` (which divides them) that may share the WAN in turns;
/// or, with replicas in several sites, one of each, whose gradients are messages between the sites
/// (sums inside a site stay in `costs.optimizer`). Blocks are up to four operators, and the budget
/// is what the capacity leaves.
[[nodiscard]] std::string representative_text(const LayoutProblem& problem, const LayoutPlan& plan,
                                              const std::string& name, int cell = 1);

/// Those on the front of `plans`, by time and cost.
[[nodiscard]] std::set<Layout> layouts_on_front(const std::vector<LayoutPlan>& plans);

/// "1,2,8", "4:16" (all of them) or a mix: ascending, each once. Throws Error that names `option`.
[[nodiscard]] std::vector<int> read_counts(const char* option, std::string_view text, int most);

/// The divisors of a number, ascending.
[[nodiscard]] std::vector<int> divisors(int of);

}  // namespace longhaul::planner
