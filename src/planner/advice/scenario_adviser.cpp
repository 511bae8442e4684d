#include "planner/advice/scenario_adviser.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

#include "base/clock.hpp"
#include "collective/overlap/overlaps.hpp"
#include "planner/make_schedule.hpp"
#include "planner/overlap/evaluate_overlap.hpp"
#include "planner/search/makespan.hpp"
#include "planner/wan_sharing/share_wan.hpp"
#include "schedule/generators/registry.hpp"
#include "schedule/validity/validity.hpp"

namespace longhaul::planner {
namespace {

/// Of the plans of a set, those that are tried with more ideas.
constexpr std::size_t kStartsOfSharing = 3;
/// Iterations that a search of overlaps simulates where moves bound it.
constexpr std::size_t kEvaluationsOfOverlap = 200;
/// Of the plans of a set, those that are tried with each method.
constexpr std::size_t kStartsOfMethods = 3;
constexpr double kShareOfMethods = 0.2;
constexpr std::size_t kAll = std::numeric_limits<std::size_t>::max();
constexpr double kShareOfOrders = 0.35, kShareOfTurns = 0.35;
/// Of the time, that of all searches of overlaps.
constexpr double kShareOfOverlaps = 1 - kShareOfOrders - kShareOfTurns;

Score times(Score score, double updates) {
  constexpr double kMost = 0x1p62;
  return std::llround(std::min(kMost, static_cast<double>(score) * updates));
}

}  // namespace

void ScenarioAdviser::add(AdvisedPlan plan) {
  double updates = 1, share = 1;  // of all that is trained, of that by exact sums
  if (options_.methods) {
    const TrainingMethods& methods = *options_.methods;
    updates = *methods.updates(plan.method);
    share = updates / *methods.updates();
  }
  if (place_.longest)
    plan.late_by = std::max(Duration::zero(), scaled(plan.makespan, share) - *place_.longest);
  plan.scenario = place_.scenario;
  plan.ideas |= place_.base;
  plan.score = times(place_.score(plan.makespan), updates);
  pool_.add(std::move(plan));
}

void ScenarioAdviser::add_schedule(Schedule schedule, const IdeaSet& ideas, const Bound& bound) {
  if (schedule::first_violation(schedule, scenario_)) return;
  const Result<Duration> makespan = try_makespan(schedule, scenario_);
  pool_.note_evaluated();
  if (makespan)
    add({.schedule = std::move(schedule),
         .overlap = "",
         .makespan = *makespan,
         .ideas = ideas,
         .bound = bound});
}

bool ScenarioAdviser::must_stop() {
  if (options_.stopped && options_.stopped()) pool_.stop();
  return pool_.is_stopped();
}

SearchOptions ScenarioAdviser::options_of_search(Duration time, double share) const {
  SearchOptions search;
  search.moves = options_.moves;
  search.time = scaled(time, share);
  search.threads = options_.threads;
  search.stopped = options_.stopped;
  return search;
}

void ScenarioAdviser::try_schedule(const std::string& name) {
  const ScheduleRequest request = parse_schedule(name);
  if (const Result<ScheduleResult> made = try_make(request, scenario_))
    add_schedule(made->schedule, ideas_of(request.generator, made->schedule));
}

void ScenarioAdviser::try_candidates(Duration time) {
  const TimePoint begin = now();
  const auto enough = [&] { return must_stop() || options_.is_over(begin, time); };
  Candidates candidates = find_candidates(scenario_, Arrangement::decoupled, {}, enough);
  for (Candidate& each : candidates.fitting) {
    pool_.note_evaluated();
    if (schedule::first_violation(each.schedule, scenario_)) continue;
    const IdeaSet ideas = ideas_of(schedule::find_generator(each.schedule.name), each.schedule);
    add({.schedule = std::move(each.schedule),
         .overlap = "",
         .makespan = each.makespan,
         .ideas = ideas});
  }
}

std::optional<Refusal> ScenarioAdviser::search_orders(Duration time) {
  if (must_stop() && pool_.best() != nullptr) return std::nullopt;
  Result<SearchResult> found = try_find_best(scenario_, options_of_search(time, kShareOfOrders));
  if (!found) return found.refusal();
  const Bound bound = found->bound;  // of all that it considered, without the optimizer's steps
  pool_.set_bound(place_.scenario, bound);
  add_schedule(std::move(found->schedule), only(Idea::order), bound);
  return std::nullopt;
}

void ScenarioAdviser::try_turns(Duration time) {
  if (scenario_.parallel.cell < 2)
    return pool_.refuse(Idea::turns, "no pipelines share a way over the WAN (parallel.cell is 1)");
  const TimePoint begin = now();
  const auto enough = [&](double share) {
    return must_stop() || options_.is_over(begin, scaled(time, share));
  };
  if (const Result<ScheduleResult> atlas = try_make(parse_schedule("atlas"), scenario_))
    add_schedule(atlas->schedule, only(Idea::turns));
  for (const IdeaSet& of : {IdeaSet{}, only(Idea::order)})
    for (const Schedule& each :
         pool_.fastest_of(place_.scenario, of | place_.base, kStartsOfSharing)) {
      if (enough(kShareOfTurns / 2)) break;
      const Result<Schedule> shared = try_share_wan(each, scenario_);
      if (shared) add_schedule(*shared, of | only(Idea::turns));
    }
  if (enough(kShareOfTurns)) return;
  const Result<SearchResult> found =
      find_shared_best(scenario_, options_of_search(time, kShareOfTurns));
  if (found) add_schedule(found->schedule, only(Idea::order) | only(Idea::turns), found->bound);
}

void ScenarioAdviser::try_overlaps(Duration time, const IdeaSet& with, StaticStarts starts) {
  if (!scenario_.operators.all) {
    pool_.refuse(
        Idea::overlap,
        "nothing says which operators blocks have ([model], costs.profile or [[operator]])");
    return;
  }
  const Parallel& parallel = scenario_.parallel;
  if (parallel.tensor == 1 &&
      (parallel.replicas == 1 || parallel.gradient_sync == GradientSync::none))
    return pool_.refuse(Idea::overlap,
                        "nothing is collective but what blocks and the optimizer's step have in");
  pool_.exclude(Idea::overlap, Idea::method,
                "exchanges of a method take the place of the sums that it hides");
  const std::vector<Start> all = starts_of_overlaps(with, starts);
  const double searches = static_cast<double>(2 * std::max<std::size_t>(4, all.size()));
  for (const Start& start : all)
    for (const auto& overlaps : {collective::overlaps(), collective::searched_overlaps()})
      for (const collective::Overlap& overlap : overlaps) {
        if (must_stop()) return;
        add_overlapped(overlap, start.schedule, start.ideas,
                       scaled(time, kShareOfOverlaps / searches));
      }
}

std::vector<ScenarioAdviser::Start> ScenarioAdviser::starts_of_overlaps(const IdeaSet& with,
                                                                        StaticStarts starts) const {
  std::vector<Start> all;
  for (const IdeaSet& of :
       {IdeaSet{}, only(Idea::order), only(Idea::turns), only(Idea::order) | only(Idea::turns)}) {
    if (!is_within(with, of)) continue;
    if (of.none() && starts == StaticStarts::every) {
      for (Schedule& each : pool_.fastest_of(place_.scenario, place_.base, kAll))
        all.push_back({of, std::move(each)});
    } else if (std::optional<Schedule> fastest = fastest_with_equal_replicas(of)) {
      all.push_back({of, *std::move(fastest)});
    }
  }
  return all;
}

std::optional<Schedule> ScenarioAdviser::fastest_with_equal_replicas(const IdeaSet& of) const {
  const auto are_equal = [](const Schedule& schedule) {
    return std::ranges::all_of(schedule.replica_ids(), [&](ReplicaId replica) {
      return std::ranges::all_of(schedule.device_ids(), [&](DeviceId device) {
        return std::ranges::equal(schedule.row(replica, device),
                                  schedule.row(ReplicaId{0}, device));
      });
    });
  };
  const std::vector<Schedule> all = pool_.fastest_of(place_.scenario, of | place_.base, kAll);
  // With rows that differ none can be: the first of them says why.
  const auto found = has(of, Idea::turns) ? std::ranges::find_if(all, are_equal) : all.begin();
  if (found != all.end()) return *found;
  return all.empty() ? std::nullopt : std::optional{all.front()};
}

void ScenarioAdviser::add_overlapped(const collective::Overlap& overlap, const Schedule& schedule,
                                     const IdeaSet& with, Duration most) {
  const TimePoint begin = now();
  const auto watch = [&](std::size_t evaluated) {
    if (must_stop()) return true;
    return options_.moves ? evaluated >= kEvaluationsOfOverlap : options_.is_over(begin, most);
  };
  const Result<OverlapResult> result =
      evaluate_overlap(overlap, schedule, scenario_, Arrangement::decoupled, {}, watch);
  pool_.note_evaluated();
  if (!result) {
    pool_.refuse(Idea::overlap, result.refusal().reason);
    return;
  }
  if (!result->fits()) return;
  std::optional<std::size_t> evaluated;
  if (result->certificate) evaluated = result->certificate->evaluated;
  add({.schedule = schedule,
       .overlap = overlap.name,
       .makespan = result->makespan,
       .ideas = with | only(Idea::overlap),
       .bound = {result->bound.lower_bound, "any partition and order of its collectives",
                 result->bound.reason},
       .peak = result->peak,
       .overlap_evaluations = evaluated});
}

std::optional<std::string> ScenarioAdviser::why_no_methods() const {
  const TrainingMethods& methods = *options_.methods;
  if (scenario_.parallel.replicas == 1) return "there is one replica";
  if (scenario_.parallel.gradient_sync == GradientSync::none)
    return "no gradients are summed but inside a datacenter";
  for (std::size_t method = 1; method < methods.others.size(); ++method)
    if (methods.updates(method)) return std::nullopt;
  if (methods.others.size() > 1) return "no method that is allowed reaches the loss on the curves";
  return methods.left_out.empty() ? "no method of the curves changes as little as is allowed"
                                  : "no method that is allowed can be played";
}

void ScenarioAdviser::try_methods(Duration time, Searched also, StaticStarts starts) {
  if (!options_.methods) return;
  if (const auto why = why_no_methods()) pool_.refuse(Idea::method, *why);
  pool_.exclude(Idea::turns, Idea::method,
                "turns state the order of all that crosses the WAN, and exchanges go beside blocks "
                "as they get ready");
  if (scenario_.parallel.gradient_sync == GradientSync::none) return;
  const TimePoint begin = now();
  try_streamed_methods();
  for (const IdeaSet& of : {IdeaSet{}, only(Idea::order)})
    for (const Schedule& each :
         pool_.fastest_of(place_.scenario, of | place_.base,
                          of.none() && starts == StaticStarts::every ? kAll : kStartsOfMethods)) {
      if (pool_.has_method(place_.scenario) &&
          (must_stop() || options_.is_over(begin, scaled(time, kShareOfMethods / 2))))
        return;
      try_methods_of(each, of);
    }
  if (also == Searched::no || must_stop()) return;
  // An order for what is left to wait for where an exchange takes no time.
  const Result<SearchResult> found =
      try_find_best(without_sums(scenario_), options_of_search(time, kShareOfMethods / 2));
  if (!found) return;
  if (!schedule::first_violation(found->schedule, scenario_))
    try_methods_of(found->schedule, only(Idea::order));
  pool_.set_bound_of_methods(
      place_.scenario,
      {found->bound.lower_bound, "any schedule by a method, as if exchanges took no time",
       found->bound.reason});
}

void ScenarioAdviser::try_methods_of(const Schedule& schedule, const IdeaSet& with) {
  const Result<BesideMethods> beside = beside_methods(schedule, scenario_, *options_.methods);
  if (!beside) return refuse_method(beside.refusal().reason);
  play_methods(schedule, with, *beside, Played::to_a_barrier);
}

void ScenarioAdviser::try_streamed_methods() {
  const Result<Schedule> parts = stream_of_parts(scenario_, *options_.methods);
  const std::vector<Schedule> any = pool_.fastest_of(place_.scenario, place_.base, 1);
  if (!parts || any.empty() || schedule::first_violation(*parts, scenario_)) return;
  const Result<BesideMethods> beside = beside_methods(any.front(), scenario_, *options_.methods);
  if (beside) play_methods(*parts, {}, *beside, Played::streamed);
}

void ScenarioAdviser::play_methods(const Schedule& schedule, const IdeaSet& with,
                                   const BesideMethods& beside, Played how) {
  const TrainingMethods& methods = *options_.methods;
  for (std::size_t method = 0; method < methods.others.size(); ++method) {
    if (!methods.updates(method)) continue;
    pool_.note_evaluated();
    const Result<MethodPlay> play = play_method(schedule, scenario_, methods, method, beside, how);
    if (!play) return refuse_method(play.refusal().reason);
    const bool is_exact = change_of(methods.others[method]) == TrainingChange::exact;
    add({.schedule = schedule,
         .overlap = "",
         .makespan = play->update,
         .ideas = is_exact ? with : with | only(Idea::method),
         .method = method,
         .message = *play->scenario.train.message,
         .alone = beside.alone,
         .forecast = play->forecast});
  }
}

void ScenarioAdviser::refuse_method(const std::string& reason) {
  if (!why_no_methods() && !std::exchange(refused_method_, true))
    pool_.refuse(Idea::method, reason);
}

}  // namespace longhaul::planner
