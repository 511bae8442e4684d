#include "report/planning.hpp"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "base/table.hpp"
#include "report/record.hpp"
#include "report/scenario_text.hpp"

namespace longhaul::report {
namespace {

using nlohmann::ordered_json;

/// The makespan on the links as profiled.
Duration makespan_of(const planner::ScheduleResult& made) {
  if (made.solved) return made.solved->makespan;
  return made.robust ? made.robust->candidates.front().times.nominal : made.found->makespan;
}

std::string candidate_table(const planner::SearchResult& found, Duration reached) {
  double largest = 0;
  for (const planner::Candidate& candidate : found.candidates.fitting)
    largest = std::max(largest, static_cast<double>(candidate.makespan.count()));
  const TimeScale scale{largest};
  Table table{{{"candidate", Align::left},
               {fmt::format("makespan [{}]", scale.unit())},
               {"above this [%]"}}};
  const auto best = static_cast<double>(reached.count());
  for (const planner::Candidate& candidate : found.candidates.fitting) {
    const auto makespan = static_cast<double>(candidate.makespan.count());
    table.add_row({candidate.schedule.name, scale.text(makespan),
                   percent_text(best > 0 ? makespan / best - 1.0 : 0.0)});
  }
  return table.text();
}

std::string bound_text(Duration makespan, const planner::Bound& bound) {
  const TimeScale scale{static_cast<double>(makespan.count())};
  return fmt::format("no schedule ends before {} {} ({}; {})",
                     scale.text(static_cast<double>(bound.lower_bound.count())), scale.unit(),
                     bound.holds_for, bound.reason);
}

std::string gap_text(Duration makespan, const planner::Bound& bound) {
  return bound_text(makespan, bound) +
         fmt::format(": gap {} %\n", percent_text(planner::gap(makespan, bound)));
}

/// A solver may return what it started from, which need not be of its class: then there is no gap.
bool is_outside(const planner::SolverResult& solved) { return solved.bound > solved.makespan; }

planner::Bound proof_of(const planner::SolverResult& solved) {
  return {solved.bound, solved.holds_for, "solver"};
}

std::string solver_text(const planner::SolverResult& solved) {
  if (!is_outside(solved)) return gap_text(solved.makespan, proof_of(solved));
  return bound_text(solved.makespan, proof_of(solved)) + ", but this one is not of that class\n";
}

ordered_json solver_json(const planner::SolverResult& solved) {
  const bool of_class = !is_outside(solved);
  return {
      {"status", solved.status},
      {"seconds", solved.seconds},
      {"makespan_ns", solved.makespan.count()},
      {"lower_bound_ns", solved.bound.count()},
      {"gap", of_class ? ordered_json(planner::gap(solved.makespan, proof_of(solved))) : nullptr},
      {"bound_holds_for", solved.holds_for},
      {"refused", solved.refused}};
}

}  // namespace

std::string under_jitter_text(std::span<const planner::RobustCandidate> candidates) {
  double largest = 0;
  for (const planner::RobustCandidate& candidate : candidates)
    largest = std::max(largest, static_cast<double>(candidate.times.tail.count()));
  const TimeScale scale{largest};
  Table table{{{"under jitter", Align::left},
               {fmt::format("p95 [{}]", scale.unit())},
               {"median"},
               {"mean"},
               {"as profiled"}}};
  const auto cell = [&](Duration time) { return scale.text(static_cast<double>(time.count())); };
  for (const planner::RobustCandidate& candidate : candidates) {
    const planner::UnderJitter& times = candidate.times;
    table.add_row({candidate.origin, cell(times.tail), cell(times.median), cell(times.mean),
                   cell(times.nominal)});
  }
  return table.text();
}

ordered_json under_jitter_json(std::span<const planner::RobustCandidate> candidates) {
  ordered_json json = ordered_json::array();
  for (const planner::RobustCandidate& candidate : candidates)
    json.push_back({{"origin", candidate.origin},
                    {"p95_ns", candidate.times.tail.count()},
                    {"median_ns", candidate.times.median.count()},
                    {"mean_ns", candidate.times.mean.count()},
                    {"makespan_ns", candidate.times.nominal.count()}});
  return json;
}

std::string planning_note(const planner::ScheduleResult& made) {
  if (!made.found) return {};
  const planner::SearchResult& found = *made.found;
  const auto unseen =
      std::ranges::count_if(found.candidates.rejected, &planner::RejectedCandidate::unseen);
  std::string note = fmt::format(
      "{}: from {}, the best of {} that fit{}; {} tried, {} taken\n", made.schedule.name,
      found.started_from, counted(std::ssize(found.candidates.fitting), "schedule"),
      unseen > 0 ? fmt::format(" ({} not looked at, for want of time)", unseen) : std::string{},
      counted(found.moves, "move"), found.accepted);
  if (made.solved)
    note += fmt::format("{}: the solver ended after {:.1f} s: {}\n", made.schedule.name,
                        made.solved->seconds, made.solved->status);
  if (made.solved && !made.solved->refused.empty())
    note += fmt::format("{}: what the solver found cannot run ({}). Report it with the scenario.\n",
                        made.schedule.name, made.solved->refused);
  if (made.robust)
    note += fmt::format("{}: under jitter it is {}\n", made.schedule.name,
                        made.robust->candidates.front().origin);
  return note;
}

std::string planning_text(const planner::ScheduleResult& made) {
  if (!made.found) return {};
  const planner::SearchResult& found = *made.found;
  std::string text =
      "\nHow it was found:\n" + planning_note(made) + gap_text(makespan_of(made), found.bound);
  if (made.solved) text += solver_text(*made.solved);
  text += '\n' + candidate_table(found, makespan_of(made));
  for (const planner::RejectedCandidate& rejected : found.candidates.rejected)
    text += fmt::format("not {}: {}\n", rejected.schedule, rejected.reason);
  if (made.robust) text += '\n' + under_jitter_text(made.robust->candidates);
  return text;
}

ordered_json planning_json(const planner::ScheduleResult& made) {
  if (!made.found) return nullptr;
  const planner::SearchResult& found = *made.found;
  ordered_json json;
  json["makespan_ns"] = makespan_of(made).count();
  json["started_from"] = found.started_from;
  json["moves_tried"] = found.moves;
  json["moves_taken"] = found.accepted;
  json["lower_bound_ns"] = found.bound.lower_bound.count();
  json["gap"] = planner::gap(makespan_of(made), found.bound);
  json["bound_holds_for"] = found.bound.holds_for;
  json["bound_reason"] = found.bound.reason;
  json["candidates"] = ordered_json::array();
  for (const planner::Candidate& candidate : found.candidates.fitting)
    json["candidates"].push_back(
        {{"schedule", candidate.schedule.name}, {"makespan_ns", candidate.makespan.count()}});
  json["rejected"] = ordered_json::array();
  for (const planner::RejectedCandidate& rejected : found.candidates.rejected)
    json["rejected"].push_back({{"schedule", rejected.schedule}, {"reason", rejected.reason}});
  if (made.solved) json["solver"] = solver_json(*made.solved);
  if (made.robust) json["under_jitter"] = under_jitter_json(made.robust->candidates);
  return json;
}

}  // namespace longhaul::report
