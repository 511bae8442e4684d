#include "harness/session/adaptive_scheduler.hpp"

#include <utility>

#include "base/clock.hpp"
#include "base/error.hpp"
#include "base/unit_text.hpp"
#include "harness/profile/link_profile.hpp"
#include "host/background.hpp"
#include "planner/search/makespan.hpp"
#include "report/evaluate.hpp"
#include "schedule/validity/validity.hpp"

namespace longhaul::harness {
namespace {

using nlohmann::ordered_json;

/// Within the budget, with its makespan.
Result<Selection> try_select(const planner::ScheduleRequest& request,
                             const planner::ScheduleChooser& chooser, const Scenario& scenario,
                             Arrangement arrangement) {
  Result<planner::ScheduleResult> made = chooser.try_choose(request);
  if (!made) return made.refusal();
  if (auto violation = schedule::first_violation(made->schedule, scenario))
    return Refusal{violation->text};
  const Result<Duration> makespan = planner::try_makespan(made->schedule, scenario, arrangement);
  if (!makespan) return makespan.refusal();
  const std::string origin =
      made->found ? fmt::format("{} (from {})", request.name, made->found->started_from)
                  : request.name;
  return Selection{(*std::move(made)).schedule, origin, *makespan};
}

}  // namespace

Selection select_schedule(const std::string& list, const Scenario& scenario,
                          const planner::PlannerOptions& options) {
  std::optional<Selection> best;
  std::string reasons;
  const planner::ScheduleChooser chooser{planner::parse_schedules(list), scenario, options};
  for (const planner::ScheduleRequest& request : chooser.requests()) {
    Result<Selection> selection =
        try_select(request, chooser, scenario, options.search.arrangement);
    if (!selection)
      reasons += fmt::format("{}{}: {}", reasons.empty() ? "" : "; ", request.name,
                             selection.refusal().reason);
    else if (!best || selection->predicted < best->predicted)
      best = *std::move(selection);
  }
  if (!best)
    fail("none of {} fits scenario {} ({}). Name other schedules.", list, scenario.name, reasons);
  return *std::move(best);
}

AdaptiveScheduler::AdaptiveScheduler(Schedule running, Scenario believed, AdaptOptions options)
    : running_{std::move(running)},
      believed_{std::move(believed)},
      seen_{believed_},
      options_{std::move(options)} {
  // The other cores are other ranks'.
  if (options_.planner.search.threads == 0) options_.planner.search.threads = 1;
}

void AdaptiveScheduler::observe(int iteration, const Plan& plan, const OpTimes& times,
                                const OpTimes& truth) {
  const Profile profile = profile_of(plan, times, believed_, options_.source);
  seen_ = with_profile(believed_, profile);
  if (worker_.joinable()) return;
  const Deviation deviation = largest_deviation(profile, believed_);
  if (deviation.ratio <= options_.threshold) return;
  std::optional<Profile> played;
  if (options_.source.emulation == engine::Emulation::on)
    played = profile_of(plan, truth, believed_, options_.source);
  RunEvent event{iteration, "deviation", {}, {}};
  event.text =
      fmt::format("{} ({:.1f}% off); selecting anew from {}\n{}", deviation.what,
                  100 * deviation.ratio, options_.list, profile_text(profile, played, believed_));
  event.details = {{"deviation_percent", 100 * deviation.ratio},
                   {"largest", deviation.what},
                   {"profile", profile_json(profile, played, believed_)}};
  events_.push_back(std::move(event));
  believed_ = seen_;
  regenerate();
}

void AdaptiveScheduler::regenerate() {
  ready_ = false;
  outcome_ = {};
  worker_ = host::run_in_background([this, scenario = believed_] {
    const TimePoint begin = now();
    try {
      outcome_.selection = select_schedule(options_.list, scenario, options_.planner);
    } catch (const std::exception& error) {
      outcome_.problem = error.what();
    }
    outcome_.took = now() - begin;
    ready_ = true;
  });
}

std::optional<Schedule> AdaptiveScheduler::take_switch(int iteration) {
  if (!worker_.joinable() || !ready_) return std::nullopt;
  worker_.join();
  const Outcome outcome = std::exchange(outcome_, {});
  if (!outcome.selection) {
    events_.push_back({iteration, "failed", outcome.problem, {{"reason", outcome.problem}}});
    return std::nullopt;
  }
  decide(iteration, *outcome.selection, outcome.took);
  if (events_.back().what != "switch") return std::nullopt;
  running_ = outcome.selection->schedule;
  return running_;
}

/// The links may have changed again meanwhile: what was seen last decides.
void AdaptiveScheduler::decide(int iteration, const Selection& selection, Duration took) {
  const Arrangement arrangement = options_.planner.search.arrangement;
  const Duration before = planner::makespan_of(running_, seen_, arrangement);
  const Duration after = planner::makespan_of(selection.schedule, seen_, arrangement);
  const double gain =
      1.0 - static_cast<double>(after.count()) / static_cast<double>(before.count());
  const bool worth_it = gain >= kLeastGain;
  RunEvent event{iteration, worth_it ? "switch" : "kept", {}, {}};
  event.text = fmt::format("{}: {} {} on the profiled links, the order before {}; selected in {}",
                           worth_it ? "another order" : "the order stays", selection.origin,
                           to_text(after), to_text(before), to_text(took));
  event.details = {{"from", running_.name},
                   {"to", selection.origin},
                   {"from_profiled_ns", before.count()},
                   {"to_profiled_ns", after.count()},
                   {"gain_percent", 100 * gain},
                   {"selected_in_ns", took.count()}};
  events_.push_back(std::move(event));
}

}  // namespace longhaul::harness
