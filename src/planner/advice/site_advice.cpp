#include "planner/advice/site_advice.hpp"

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <utility>

#include "base/clock.hpp"
#include "base/error.hpp"
#include "base/index.hpp"
#include "planner/advice/contest.hpp"
#include "planner/make_schedule.hpp"
#include "planner/sites/cell_scenario.hpp"
#include "planner/sites/cost.hpp"

namespace longhaul::planner {
namespace {

/// Placements that every schedule is tried on: the site planner's best by each objective, and those
/// that sums of gradients keep from being so.
constexpr std::size_t kByPlanner = 4, kByHope = 2;
constexpr double kMostEntries = 4 + 2 * kByPlanner + kByHope;
/// Of the time, that of the site planner's searches.
constexpr double kShareOfPlanner = 0.2;
/// Its searches, about: algorithm 1, by one or two objectives, without sums.
constexpr int kSearches = 4;
constexpr int kMostSearched = 12;  ///< datacenters, by search_sites()

/// GPUs that compute all the time where that is fastest, or cheapest; as many pipelines as there
/// are GPUs for.
std::optional<Score> bound_of_any(const GpuInventory& inventory, const SiteAdviceOptions& options) {
  const int replicas = inventory.most_cells(1);
  if (options.searches.methods || replicas == 0) return std::nullopt;
  constexpr double kNanodollars = 1e9, kNsOfHour = 3600e9;
  const Costs& costs = inventory.costs();
  double work = 0, nanodollars = 0;  // of a microbatch on all stages
  for (const DeviceId stage : inventory.scenario().device_ids()) {
    double fastest = std::numeric_limits<double>::max(), cheapest = fastest;
    for (const DatacenterId site : ordered_datacenters(inventory, SiteOrder::availability)) {
      const Datacenter& there = inventory.scenario().datacenters[index(site)];
      const auto time = [&](const std::vector<Duration>& of_stages) {
        return scaled(of_stages[index(stage)], 1 / there.speed);
      };
      const Duration least = time(costs.forward) +
                             std::min(time(costs.backward), time(costs.dgrad) + time(costs.wgrad));
      const auto ns = static_cast<double>(least.count());
      const double price = inventory.priced() ? *there.price : options.dollars_per_gpu_hour;
      fastest = std::min(fastest, ns);
      cheapest = std::min(cheapest, ns * price / kNsOfHour * kNanodollars);
    }
    work += fastest;
    nanodollars += cheapest * inventory.gpus_of_stage();
  }
  const double microbatches = inventory.scenario().parallel.microbatches;
  const double bound = options.goal == AdviceGoal::time
                           ? microbatches * work / inventory.stages() / replicas
                           : microbatches * nanodollars;
  return std::llround(bound);
}

class SiteAdviser {
public:
  SiteAdviser(const GpuInventory& inventory, const SiteAdviceOptions& options)
      : inventory_{inventory},
        options_{options},
        schedules_{parse_schedules(schedule::kSitePlannerSchedules)},
        contest_{options.searches, pool_, kMostEntries} {
    pool_.refuse(Idea::layout, "the scenario says how the model is divided");
    pool_.refuse(Idea::prefill, "it fills what stays idle, and an iteration takes as long");
    if (!options.searches.methods) pool_.refuse(Idea::method, kWhyExact);
    pool_.refuse(Idea::turns,
                 "no placement that is worth it sends from several pipelines over the WAN");
    if (ordered_datacenters(inventory, SiteOrder::availability).size() < 2)
      pool_.refuse(Idea::sites, "there is one datacenter");
  }

  [[nodiscard]] std::optional<Refusal> search() {
    if (options_.has_one_batch) set_batch();
    take_rule_of_thumb();
    contest_.try_schedules();
    if (pool_.best() == nullptr || !contest_.must_stop()) take_planned();
    contest_.try_schedules();
    if (contest_.size() == 0) return refused("no plan can be made: {}", why_none_);
    contest_.search_further([this](std::size_t number) { return with_turns(number); });
    if (pool_.best() != nullptr) return std::nullopt;
    return contest_.why_none().empty() ? refused("no plan is within the deadline. Give more time.")
                                       : refused("{}", contest_.why_none());
  }

  [[nodiscard]] SiteAdvice advice() {
    SiteAdvice found;
    found.advice = pool_.advice();
    if (options_.searches.keeps_all) found.advice.all = pool_.plans_in_time();
    found.places = std::move(places_);
    found.bound = bound_of_any(inventory_, options_);
    return found;
  }

private:
  /// The replicas of the best placement by throughput; where the search says none, of algorithm
  /// 1's.
  void set_batch() {
    const SiteSearch found = searched(inventory_, SiteObjective::throughput, 1);
    if (found.best) {
      replicas_ = found.best->layout.replicas();
    } else if (const auto plans = plans_of_algorithm1()) {
      if (const SitePlan* const best = best_plan(plans->plans, SiteObjective::throughput))
        replicas_ = best->layout.replicas();
    }
  }

  [[nodiscard]] bool has_batch(const SiteLayout& layout) const {
    return !replicas_ || layout.replicas() == *replicas_;
  }

  /// Of each size of a cell the most that fit, datacenters as algorithm 1 fills them.
  void take_rule_of_thumb() {
    const auto order = ordered_datacenters(inventory_, SiteOrder::availability);
    if (order.empty()) return;
    for (const int pipelines : cell_sizes(inventory_, order))
      for (int cells = inventory_.most_cells(pipelines); cells > 0; --cells) {
        SiteLayout layout{{}, cells, pipelines};
        if (!has_batch(layout)) continue;
        const auto placement = greedy_placement(inventory_, order, layout.replicas());
        if (!placement || why_unlinked(inventory_, *placement)) continue;
        layout.placement = *placement;
        take(layout, {}, "1f1b", false);
        break;
      }
  }

  /// What the site planner alone would say, and what is near to it.
  void take_planned() {
    take_algorithm1();
    std::vector<SiteObjective> objectives{SiteObjective::throughput};
    if (options_.goal != AdviceGoal::time)
      objectives.insert(objectives.begin(), SiteObjective::cost);
    for (const SiteObjective objective : objectives)
      take_best(searched(inventory_, objective, kByPlanner), true);
    if (inventory_.scenario().parallel.gradient_sync == GradientSync::none) return;
    // Overlaps may hide sums, methods make them less.
    Scenario without = inventory_.scenario();
    without.parallel.gradient_sync = GradientSync::none;
    const GpuInventory hopeful{without};
    take_best(searched(hopeful, objectives.front(), kByHope), false);
  }

  [[nodiscard]] Result<SitePlans> plans_of_algorithm1() const {
    Algorithm1Options how;
    how.schedule = schedules_.front();
    how.others.assign(schedules_.begin() + 1, schedules_.end());
    CellTimes cells{inventory_, CellModel::relays, options_.searches.threads, until_enough()};
    return try_algorithm1(inventory_, how, cells);
  }

  void take_algorithm1() {
    const Result<SitePlans> plans = plans_of_algorithm1();
    if (!plans) {
      why_none_ = plans.refusal().reason;
      return;
    }
    for (const SiteObjective objective :
         {SiteObjective::throughput, SiteObjective::cost, SiteObjective::time})
      if (const SitePlan* const best = best_plan(plans->plans, objective))
        take(best->layout, only(Idea::sites), best->schedule, false);
  }

  /// Was it asked to end, or has a search that begins now had its share of the time? Can be asked
  /// from many threads.
  [[nodiscard]] std::function<bool()> until_enough() const {
    return [&how = options_.searches, begin = now()] {
      if (how.stopped && how.stopped()) return true;
      return how.is_over(begin, scaled(how.time, kShareOfPlanner / kSearches));
    };
  }

  /// Empty for more datacenters than it takes.
  [[nodiscard]] SiteSearch searched(const GpuInventory& inventory, SiteObjective objective,
                                    std::size_t keep) {
    if (inventory.datacenters() > kMostSearched) return {};
    SiteSearchOptions how;
    how.schedules = schedules_;
    how.objective = objective;
    how.keep = keep;
    how.stopped = until_enough();
    CellTimes cells{inventory, CellModel::relays, options_.searches.threads, how.stopped};
    SiteSearch found = search_sites(inventory, how, cells);
    if (found.plans.empty() && &inventory == &inventory_) why_none_ = found.why_none;
    return found;
  }

  void take_best(const SiteSearch& found, bool first_is_searched) {
    for (std::size_t i = 0; i < found.plans.size(); ++i)
      take(found.plans[i].layout, only(Idea::sites), found.plans[i].schedule,
           first_is_searched && i == 0);
  }

  /// Once each.
  void take(const SiteLayout& layout, const IdeaSet& base, const std::string& schedule,
            bool is_searched) {
    if (!has_batch(layout)) return;
    const auto known = std::ranges::find(places_, layout, &AdvisedPlace::layout);
    if (known != places_.end())
      return contest_.tell_more(static_cast<std::size_t>(known - places_.begin()), schedule,
                                is_searched);
    Contest::Entry entry = entry_of(layout, base, schedule);
    entry.is_searched = is_searched;
    contest_.add(std::move(entry));
  }

  [[nodiscard]] Contest::Entry entry_of(const SiteLayout& layout, IdeaSet base,
                                        const std::string& schedule) {
    const AdvisedPlace& place = places_.emplace_back(layout, options_.placed(layout));
    bases_.push_back(base);
    return {.scenario = &place.scenario,
            .base = base,
            .first_schedules = {schedule},
            .score = [this, layout](
                         Duration time) { return score_of(inventory_, layout, time, options_); },
            .longest = options_.longest_on ? options_.longest_on(layout) : std::nullopt};
  }

  /// The same replicas, in cells that share the WAN.
  [[nodiscard]] std::optional<Contest::Entry> with_turns(std::size_t number) {
    SiteLayout layout = places_[number].layout;
    if (layout.placement.size() < 2 || inventory_.scenario().parallel.cell) return std::nullopt;
    int cell = std::min(kMostCell, layout.replicas());
    while (layout.replicas() % cell != 0) --cell;
    if (cell == 1) return std::nullopt;
    layout.cells = layout.replicas() / cell;
    layout.pipelines = cell;
    if (std::ranges::find(places_, layout, &AdvisedPlace::layout) != places_.end())
      return std::nullopt;
    return entry_of(layout, bases_[number], "1f1b");
  }

  const GpuInventory& inventory_;
  const SiteAdviceOptions& options_;
  std::vector<ScheduleRequest> schedules_;
  IdeaPool pool_;
  Contest contest_;
  std::deque<AdvisedPlace> places_;
  std::vector<IdeaSet> bases_;  ///< of each place
  std::optional<int> replicas_;
  std::string why_none_;
};

}  // namespace

Score score_of(const GpuInventory& inventory, const SiteLayout& layout, Duration time,
               const SiteAdviceOptions& options) {
  constexpr double kNanodollars = 1e9, kNsOfHour = 3600e9;
  const double parts = options.has_one_batch ? 1 : layout.replicas();
  const auto ns = static_cast<double>(time.count());
  if (options.goal == AdviceGoal::time) return std::llround(ns / parts);
  const SiteFigures figures = figures_of(inventory, layout, {time, {}, 0});
  const double dollars =
      inventory.priced() && figures.gpu_dollars_per_hour
          ? *figures.gpu_dollars_per_hour * ns / kNsOfHour + figures.egress_dollars
          : options.dollars_per_gpu_hour * figures.gpus_used * ns / kNsOfHour;
  return std::llround(dollars * kNanodollars / parts);
}

Result<SiteAdvice> advise_sites(const GpuInventory& inventory, const SiteAdviceOptions& options) {
  SiteAdviser adviser{inventory, options};
  if (auto refusal = adviser.search()) return *std::move(refusal);
  return adviser.advice();
}

}  // namespace longhaul::planner
