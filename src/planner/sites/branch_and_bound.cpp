#include "planner/sites/branch_and_bound.hpp"

#include <algorithm>
#include <limits>
#include <numeric>
#include <span>

#include "base/error.hpp"
#include "base/index.hpp"
#include "planner/search/in_parallel.hpp"
#include "planner/sites/placement_tree.hpp"

namespace longhaul::planner {
namespace {

constexpr int kMostDatacenters = 12;
/// Leaves that are simulated before bounds are compared again: fixed, so that a result does not
/// depend on the number of threads.
constexpr std::size_t kLeafBatch = 16;
/// Leaves whose orders are made before: fixed as well.
constexpr std::size_t kOrders = 256;

class Search {
public:
  Search(const GpuInventory& inventory, const SiteSearchOptions& options, CellTimes& cells)
      : inventory_{inventory}, options_{options}, cells_{cells} {}

  SiteSearch run() {
    found_.filling = filling_of(inventory_.datacenters(), inventory_.stages());
    const std::int64_t before = cells_.simulated();
    for (const ScheduleRequest& schedule : options_.schedules) {
      for (const int pipelines : values_of_c()) start_from(schedule, pipelines);
    }
    std::vector<std::size_t> by_bound(trees_.size());
    std::iota(by_bound.begin(), by_bound.end(), std::size_t{0});
    std::ranges::stable_sort(by_bound, {}, [&](std::size_t i) { return trees_[i].bound(); });
    for (const std::size_t i : by_bound) {
      if (must_stop())
        leave(trees_[i]);
      else
        look_through(trees_[i]);
    }
    found_.simulated = cells_.simulated() - before;
    if (found_.plans.empty()) {
      found_.why_none = why_none();
      return std::move(found_);
    }
    found_.best = found_.plans.front();
    const double best = score(*found_.best, options_.objective);
    if (least_unexplored_ < best) found_.gap = 1 - least_unexplored_ / best;
    return std::move(found_);
  }

private:
  [[nodiscard]] std::vector<int> values_of_c() const {
    if (!options_.pipelines.empty()) return options_.pipelines;
    return cell_sizes(inventory_);
  }

  void start_from(const ScheduleRequest& schedule, int pipelines) {
    const int last = inventory_.most_cells(pipelines);
    for (int count = 1; count <= std::min(last, options_.most_cells.value_or(last)); ++count) {
      PlacementTree tree{
          inventory_, {schedule, count, pipelines}, options_.objective, found_.filling};
      found_.candidates += tree.count();
      if (tree.count() == 0) ++found_.unsupplied;
      if (tree.count() > 0) trees_.push_back(std::move(tree));
    }
    if (last >= 1 && options_.prune) take_algorithm1(schedule, pipelines);
  }

  void take_algorithm1(const ScheduleRequest& schedule, int pipelines) {
    const Result<SitePlans> plans = try_algorithm1(
        inventory_, {SiteOrder::availability, schedule, pipelines, options_.most_cells}, cells_);
    if (!plans) return;  // a link is missing in its placement: the search does without this start
    if (const SitePlan* best = best_plan(plans->plans, options_.objective)) consider(*best);
  }

  /// The first reason of: too few GPUs, no link, what a schedule says.
  [[nodiscard]] std::string why_none() const {
    const std::vector<int> sizes = values_of_c();
    if (auto why = why_no_cell(inventory_, std::ranges::min(sizes))) return why->reason;
    if (trees_.empty()) return "each datacenter holds fewer stages than a pipeline's share of it";
    if (!failure_.empty()) return failure_;
    return "no sequence of datacenters that holds all stages is linked both ways. Add a [[link]]";
  }

  void consider(const SitePlan& plan) {
    if (!plan.feasible() && failure_.empty()) failure_ = plan.infeasible;
    if (!plan.feasible() || score(plan, options_.objective) >= score_) return;
    const auto by = [&](const SitePlan& each) { return score(each, options_.objective); };
    std::vector<SitePlan>& kept = found_.plans;
    const auto same = std::ranges::find(kept, plan.layout.placement,
                                        [](const SitePlan& each) { return each.layout.placement; });
    if (same != kept.end() && by(*same) <= by(plan)) return;
    if (same != kept.end()) kept.erase(same);
    kept.insert(std::ranges::upper_bound(kept, by(plan), {}, by), plan);
    if (kept.size() > options_.keep) kept.pop_back();
    if (kept.size() == options_.keep) score_ = by(kept.back());
  }

  /// Those that the orders of their schedule show to be no better are not simulated; the others
  /// are, those first that promise most.
  void evaluate(const PlacementTree& tree, std::span<PlacementTree::Leaf> leaves) {
    found_.evaluated += std::ssize(leaves);
    if (options_.prune && tree.group().schedule.has_timetable()) {
      const double score = score_;
      in_parallel(leaves.size(), cells_.threads(), [&](std::size_t i) {
        const CellQuery query = query_of(tree, leaves[i]);
        const Duration least = cells_.least_time(query, tree.hops(query.layout.placement),
                                                 tree.time_of(leaves[i].placement, score));
        leaves[i].bound = std::max(leaves[i].bound, tree.score_of(leaves[i].placement, least));
      });
      std::ranges::stable_sort(leaves, {}, &PlacementTree::Leaf::bound);
    }
    for (std::size_t i = 0; i < leaves.size(); i += kLeafBatch) {
      std::vector<CellQuery> queries;
      for (const PlacementTree::Leaf& leaf :
           leaves.subspan(i, std::min(kLeafBatch, leaves.size() - i)))
        if (!options_.prune || leaf.bound < score_) queries.push_back(query_of(tree, leaf));
      const std::vector<CellTime> times = cells_.times(queries);
      for (std::size_t q = 0; q < queries.size(); ++q)
        consider(make_plan(inventory_, queries[q], times[q]));
    }
  }

  static CellQuery query_of(const PlacementTree& tree, const PlacementTree::Leaf& leaf) {
    return {tree.group().schedule, {leaf.placement, tree.group().cells, tree.group().pipelines}};
  }

  void look_through(PlacementTree& tree) {
    std::vector<PlacementTree::Leaf> leaves = tree.leaves(score_, options_.prune, found_.pruned);
    std::ranges::stable_sort(leaves, {}, &PlacementTree::Leaf::bound);
    const std::size_t batch = tree.group().schedule.has_timetable() ? kOrders : kLeafBatch;
    std::size_t done = 0;
    while (done < leaves.size() && (!options_.prune || leaves[done].bound < score_)) {
      if (must_stop()) return leave(leaves, done);
      std::size_t count = std::min(batch, leaves.size() - done);
      if (options_.limit)
        count =
            std::min(count, to_size(std::max<std::int64_t>(0, *options_.limit - found_.evaluated)));
      if (count == 0) return leave(leaves, done);
      evaluate(tree, std::span{leaves}.subspan(done, count));
      done += count;
    }
    for (; done < leaves.size(); ++done) ++found_.pruned[static_cast<int>(leaves[done].reason)];
  }

  [[nodiscard]] bool must_stop() {
    is_stopped_ = is_stopped_ || (options_.stopped && options_.stopped());
    return is_stopped_;
  }

  /// None of its candidates is looked at.
  void leave(PlacementTree& tree) {
    found_.unexplored += tree.count();
    least_unexplored_ = std::min(least_unexplored_, tree.bound());
  }

  /// The limit is reached: what could still be better is not looked at.
  void leave(const std::vector<PlacementTree::Leaf>& leaves, std::size_t done) {
    for (; done < leaves.size(); ++done) {
      if (leaves[done].bound < score_) {
        ++found_.unexplored;
        least_unexplored_ = std::min(least_unexplored_, leaves[done].bound);
      } else {
        ++found_.pruned[static_cast<int>(leaves[done].reason)];
      }
    }
  }

  const GpuInventory& inventory_;
  const SiteSearchOptions& options_;
  CellTimes& cells_;
  std::vector<PlacementTree> trees_;
  double least_unexplored_ = std::numeric_limits<double>::infinity();
  /// That a plan must be below to be kept.
  double score_ = std::numeric_limits<double>::infinity();
  bool is_stopped_ = false;
  std::string failure_;  ///< the first of a candidate
  SiteSearch found_;
};

}  // namespace

Filling filling_of(int datacenters, int stages) {
  constexpr double kMostPlacements = 2'000;
  double placements = 0;
  double sequences = 1;     // of k datacenters
  double compositions = 1;  // of all stages into k shares
  for (int k = 1; k <= std::min(datacenters, stages); ++k) {
    sequences *= datacenters - k + 1;
    if (k > 1) compositions *= static_cast<double>(stages - k + 1) / (k - 1);
    placements += sequences * compositions;
  }
  return placements <= kMostPlacements ? Filling::any : Filling::full;
}

SitePlans plan_sites(const GpuInventory& inventory, const Algorithm1Options& options,
                     CellTimes& cells) {
  Result<SitePlans> plans = try_algorithm1(inventory, options, cells);
  if (plans && std::ranges::any_of(plans->plans, &SitePlan::feasible)) return *std::move(plans);
  SiteSearchOptions any_order;
  any_order.schedules = {options.schedule};
  any_order.schedules.insert(any_order.schedules.end(), options.others.begin(),
                             options.others.end());
  any_order.pipelines = {options.pipelines.value_or(cell_sizes(inventory).front())};
  any_order.most_cells = 1;
  const SiteSearch found = search_sites(inventory, any_order, cells);
  if (!found.best) {
    if (plans) fail("no plan can be made (D = 1: {}).", plans->plans.front().infeasible);
    return std::move(plans).or_throw();
  }
  SitePlans alone;
  alone.pipelines = found.best->layout.pipelines;
  alone.most_cells = inventory.most_cells(alone.pipelines);
  for (const DatacenterStages& share : found.best->layout.placement)
    alone.order.push_back(share.datacenter);
  alone.plans = {*found.best};
  mark_pareto(alone.plans);
  return alone;
}

std::int64_t SiteSearch::pruned_in_all() const {
  return std::accumulate(std::begin(pruned), std::end(pruned), std::int64_t{0});
}

SiteSearch search_sites(const GpuInventory& inventory, const SiteSearchOptions& options,
                        CellTimes& cells) {
  if (inventory.datacenters() > kMostDatacenters)
    fail("the scenario has {} datacenters (the search takes up to {}). Use --search algorithm1.",
         inventory.datacenters(), kMostDatacenters);
  SiteSearch found = Search{inventory, options, cells}.run();
  return found;
}

}  // namespace longhaul::planner
