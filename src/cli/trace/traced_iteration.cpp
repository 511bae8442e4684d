#include "cli/trace/traced_iteration.hpp"

#include <tuple>
#include <utility>

#include <nlohmann/json.hpp>

#include "base/index.hpp"
#include "cli/trace/trace_source.hpp"
#include "plan/rows.hpp"
#include "planner/overlap/evaluate_overlap.hpp"

namespace longhaul::cli {
namespace {

using collective::IterationPlan;

/// What a row says of its op by plan: all but times and what a run decides.
auto op_of(const TimelineRow& row) {
  return std::tie(row.op, row.rank, row.lane, row.kind, row.chunk, row.microbatch, row.part,
                  row.parts, row.peer, row.piece, row.pieces, row.collective, row.step,
                  row.operator_index, row.slice, row.slices, row.size_bytes);
}

/// As simulate_overlaps wrote it; an empty object where it did not.
nlohmann::json environment_of(const trace::Trace& trace) {
  nlohmann::json environment = nlohmann::json::parse(trace.info.environment, nullptr, false);
  return environment.is_object() ? environment : nlohmann::json::object();
}

planner::OverlapLimits limits_of(const nlohmann::json& environment) {
  const auto text = [&](const char* key) {
    const auto found = environment.find(key);
    return found != environment.end() && found->is_string() ? found->get<std::string>() : "";
  };
  return planner::parse_overlap_limits(text("allow"), text("rules"));
}

/// Ends a search where that of the trace was stopped.
planner::SearchWatch watch_of(const nlohmann::json& environment, const std::string& name) {
  const auto all = environment.find("evaluated");
  if (all == environment.end() || !all->is_object()) return {};
  const auto own = all->find(name);
  if (own == all->end() || !own->is_number_unsigned()) return {};
  return planner::ended_at(own->get<std::size_t>());
}

}  // namespace

std::optional<OpTimes> times_of(const Timeline& timeline, std::span<const TimelineRow> rows,
                                const Plan& plan) {
  if (rows.size() != plan.ops.size()) return std::nullopt;
  OpTimes times(plan.ops.size());
  Timeline names = timeline.without_rows();
  const plan::PlanRows::Numbering numbers = plan::numbering_in(names, plan);
  const plan::PlanRows expected{plan, times, 0, &numbers};
  for (std::size_t i = 0; i < rows.size(); ++i)
    if (op_of(rows[i]) != op_of(expected[i])) return std::nullopt;
  for (std::size_t i = 0; i < rows.size(); ++i) {
    const TimelineRow& row = rows[i];
    times[i] = {Duration{row.ready_ns}, Duration{row.start_ns}, Duration{row.end_ns},
                row.bound_by < 0 ? kNone<OpId> : OpId{static_cast<std::uint32_t>(row.bound_by)},
                row.bound_kind};
  }
  return times;
}

TracedIteration iteration_of_trace(const trace::Trace& trace, const std::string& source,
                                   const std::string& name, const Timeline& timeline,
                                   std::span<const TimelineRow> rows) {
  const Scenario scenario = scenario_of_trace(trace, source).as_played();
  const nlohmann::json environment = environment_of(trace);
  const planner::OverlapLimits limits = limits_of(environment);
  const planner::SearchWatch watch = watch_of(environment, name);
  for (const Arrangement arrangement : every<Arrangement>()) {
    Result<IterationPlan> plan =
        planner::iteration_named(name, scenario, arrangement, limits, watch);
    if (!plan) fail("{}: {} cannot be made again ({})", source, name, plan.refusal().reason);
    TracedIteration made{*std::move(plan), {}};
    made.lowered = collective::lower_iteration(made.plan).or_throw();
    if (times_of(timeline, rows, made.lowered.plan)) return made;
  }
  fail(
      "{}: the ops of {} are not those that this longhaul makes of it (another version, limits "
      "--allow or --rules that the trace does not hold, or a schedule from a file). Trace it "
      "again.",
      source, name);
}

}  // namespace longhaul::cli
