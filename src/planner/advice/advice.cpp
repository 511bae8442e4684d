#include "planner/advice/advice.hpp"

#include <algorithm>
#include <array>
#include <utility>

#include <fmt/format.h>

#include "base/clock.hpp"
#include "base/unit_text.hpp"
#include "collective/overlap/overlaps.hpp"
#include "planner/make_schedule.hpp"
#include "planner/overlap/evaluate_overlap.hpp"
#include "planner/search/makespan.hpp"
#include "planner/wan_sharing/share_wan.hpp"
#include "schedule/generators/registry.hpp"
#include "schedule/validity/validity.hpp"

namespace longhaul::planner {
namespace {

constexpr std::array kIdeas{Idea::order, Idea::turns, Idea::overlap};
static_assert(kIdeas.size() == kCountOf<Idea>);
/// Of the plans of a set, those that are tried with more ideas.
constexpr std::size_t kStartsOfSharing = 3;
/// Iterations that a search of overlaps simulates where moves bound it.
constexpr std::size_t kEvaluationsOfOverlap = 200;
constexpr double kShareOfOrders = 0.35, kShareOfTurns = 0.35;

class Adviser {
public:
  Adviser(const Scenario& scenario, const AdviceOptions& options)
      : scenario_{scenario}, options_{options} {}

  [[nodiscard]] std::optional<Refusal> search() {
    try_candidates();
    if (auto refusal = search_orders()) return refusal;
    try_turns();
    tell(3);
    try_overlaps();
    tell(4);
    return std::nullopt;
  }

  [[nodiscard]] Advice advice() {
    Advice advice;
    advice.evaluated = evaluated_;
    advice.is_stopped = is_stopped_;
    for (std::uint32_t bits = 0; bits < (1U << kCountOf<Idea>); ++bits)
      if (const AdvisedPlan* const plan = best_within(IdeaSet{bits}); plan && plan->ideas == bits)
        advice.plans.push_back(*plan);
    std::ranges::stable_sort(advice.plans, {}, &AdvisedPlan::makespan);
    if (const AdvisedPlan* const fixed = best_within({})) {
      advice.baseline = fixed->makespan;
      advice.waterfall = waterfall();
    }
    for (const Idea idea : kIdeas)
      if (time_with(all().reset(static_cast<std::size_t>(idea))) == time_with(all()))
        advice.unused.push_back({idea, reason_of(idea)});
    return advice;
  }

private:
  [[nodiscard]] static IdeaSet all() { return IdeaSet{}.set(); }

  /// The first of the fastest that use no other ideas; nullptr: there is none.
  [[nodiscard]] const AdvisedPlan* best_within(const IdeaSet& ideas) const {
    const AdvisedPlan* best = nullptr;
    for (const AdvisedPlan& each : plans_)
      if (is_within(each.ideas, ideas) && (best == nullptr || each.makespan < best->makespan))
        best = &each;
    return best;
  }
  [[nodiscard]] Duration time_with(const IdeaSet& ideas) const {
    const AdvisedPlan* const best = best_within(ideas);
    return best == nullptr ? Duration::max() : best->makespan;
  }

  void add(AdvisedPlan plan) { plans_.push_back(std::move(plan)); }
  void tell(int done) const {
    if (const AdvisedPlan* const best = best_within(all()); best && options_.after_step)
      options_.after_step(done, *best);
  }
  /// A schedule as it is, where it fits.
  void add_schedule(Schedule schedule, const IdeaSet& ideas, const Bound& bound = {}) {
    if (schedule::first_violation(schedule, scenario_)) return;
    const Result<Duration> makespan = try_makespan(schedule, scenario_);
    ++evaluated_;
    if (makespan) add({std::move(schedule), "", *makespan, ideas, bound});
  }

  [[nodiscard]] bool must_stop() {
    if (options_.stopped && options_.stopped()) is_stopped_ = true;
    return is_stopped_;
  }
  [[nodiscard]] SearchOptions options_of_search(double share) const {
    SearchOptions search;
    search.moves = options_.moves;
    search.time = scaled(options_.time, share);
    search.threads = options_.threads;
    return search;
  }

  void try_candidates() {
    Candidates candidates = find_candidates(scenario_, Arrangement::decoupled);
    for (Candidate& each : candidates.fitting) {
      const schedule::Generator* const from = schedule::find_generator(each.schedule.name);
      const bool knows_links = from == nullptr || !schedule::is_static(from->knowledge);
      ++evaluated_;
      if (schedule::first_violation(each.schedule, scenario_)) continue;
      add({std::move(each.schedule),
           "",
           each.makespan,
           knows_links ? only(Idea::order) : IdeaSet{},
           {}});
    }
    tell(1);
  }

  [[nodiscard]] std::optional<Refusal> search_orders() {
    if (must_stop() && !plans_.empty()) return std::nullopt;
    Result<SearchResult> found = try_find_best(scenario_, options_of_search(kShareOfOrders));
    if (!found) return found.refusal();
    for (AdvisedPlan& each : plans_) each.bound = found->bound;  // of all that it considered
    add_schedule(std::move(found->schedule), only(Idea::order), found->bound);
    tell(2);
    return std::nullopt;
  }

  void try_turns() {
    if (scenario_.parallel.cell < 2) {
      reason(Idea::turns) = "no pipelines share a way over the WAN (parallel.cell is 1)";
      return;
    }
    if (const Result<ScheduleResult> atlas = try_make(parse_schedule("atlas"), scenario_))
      add_schedule(atlas->schedule, only(Idea::turns));
    for (const IdeaSet& of : {IdeaSet{}, only(Idea::order)})
      for (const Schedule& each : fastest_of(of, kStartsOfSharing)) {
        if (must_stop()) return;
        const Result<Schedule> shared = try_share_wan(each, scenario_);
        if (shared) add_schedule(*shared, of | only(Idea::turns));
      }
    if (must_stop()) return;
    const Result<SearchResult> found =
        find_shared_best(scenario_, options_of_search(kShareOfTurns));
    if (found) add_schedule(found->schedule, only(Idea::order) | only(Idea::turns), found->bound);
    reason(Idea::turns) = "no turns on the WAN are faster than sending for oneself";
  }

  /// Of the plans with these very ideas.
  [[nodiscard]] std::vector<Schedule> fastest_of(const IdeaSet& ideas, std::size_t most) const {
    std::vector<const AdvisedPlan*> found;
    for (const AdvisedPlan& each : plans_)
      if (each.ideas == ideas) found.push_back(&each);
    std::ranges::stable_sort(found, {}, [](const AdvisedPlan* plan) { return plan->makespan; });
    std::vector<Schedule> schedules;
    for (std::size_t i = 0; i < std::min(most, found.size()); ++i)
      schedules.push_back(found[i]->schedule);
    return schedules;
  }

  void try_overlaps() {
    if (!scenario_.operators.all) {
      reason(Idea::overlap) =
          "nothing says which operators blocks have ([model], costs.profile or [[operator]])";
      return;
    }
    reason(Idea::overlap) = "no overlap of collectives is faster";
    const std::array<IdeaSet, 4> sets{IdeaSet{}, only(Idea::order), only(Idea::turns),
                                      only(Idea::order) | only(Idea::turns)};
    for (const IdeaSet& of : sets)
      for (const Schedule& each : fastest_of(of, 1)) {
        for (const collective::Overlap& overlap : collective::overlaps()) {
          if (must_stop()) return;
          add_overlapped(overlap, each, of);
        }
        for (const collective::Overlap& overlap : collective::searched_overlaps()) {
          if (must_stop()) return;
          add_overlapped(overlap, each, of);
        }
      }
  }

  void add_overlapped(const collective::Overlap& overlap, const Schedule& schedule,
                      const IdeaSet& with) {
    const TimePoint begin = now();
    const Duration most = scaled(options_.time, (1 - kShareOfOrders - kShareOfTurns) / 8);
    const auto watch = [&](std::size_t evaluated) {
      if (must_stop()) return true;
      return options_.moves ? evaluated >= kEvaluationsOfOverlap : now() - begin > most;
    };
    const Result<OverlapResult> result =
        evaluate_overlap(overlap, schedule, scenario_, Arrangement::decoupled, {}, watch);
    ++evaluated_;
    if (!result) {
      refused_by_overlap_ = result.refusal().reason;
      return;
    }
    if (result->fits())
      add({schedule,
           overlap.name,
           result->makespan,
           with | only(Idea::overlap),
           {result->bound.lower_bound, "any partition and order of its collectives",
            result->bound.reason}});
  }

  [[nodiscard]] std::vector<IdeaValue> waterfall() const {
    std::vector<IdeaValue> values;
    IdeaSet used;
    while (!used.all()) {
      std::optional<Idea> next;
      for (const Idea idea : kIdeas)
        if (!has(used, idea) &&
            (!next || time_with(used | only(idea)) < time_with(used | only(*next))))
          next = idea;
      const IdeaSet more = used | only(*next);
      values.push_back({*next, time_with({}) - time_with(only(*next)),
                        time_with(used) - time_with(more),
                        time_with(all() & ~only(*next)) - time_with(all())});
      used = more;
    }
    return values;
  }

  [[nodiscard]] std::string& reason(Idea idea) { return reasons_[static_cast<std::size_t>(idea)]; }
  [[nodiscard]] std::string reason_of(Idea idea) {
    const bool has_plans =
        std::ranges::any_of(plans_, [&](const AdvisedPlan& plan) { return has(plan.ideas, idea); });
    if (idea == Idea::order) return "no order that knows of delays is faster than the static ones";
    if (idea == Idea::overlap && !has_plans && !refused_by_overlap_.empty())
      return refused_by_overlap_;
    if (is_stopped_ && reason(idea).empty()) return "it was not tried before the search was ended";
    return reason(idea);
  }

  const Scenario& scenario_;
  const AdviceOptions& options_;
  std::vector<AdvisedPlan> plans_;
  std::array<std::string, kCountOf<Idea>> reasons_;
  std::string refused_by_overlap_;
  std::size_t evaluated_ = 0;
  bool is_stopped_ = false;
};

}  // namespace

Result<Advice> advise(const Scenario& scenario, const AdviceOptions& options) {
  Adviser adviser{scenario, options};
  if (auto refusal = adviser.search()) return *std::move(refusal);
  return adviser.advice();
}

}  // namespace longhaul::planner
