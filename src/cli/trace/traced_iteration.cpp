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

/// As simulate_overlaps wrote them; none where it did not.
planner::OverlapLimits limits_of(const trace::Trace& trace) {
  const auto environment = nlohmann::json::parse(trace.info.environment, nullptr, false);
  const auto text = [&](const char* key) {
    if (!environment.is_object()) return std::string{};
    const auto found = environment.find(key);
    return found != environment.end() && found->is_string() ? found->get<std::string>() : "";
  };
  return planner::parse_overlap_limits(text("allow"), text("rules"));
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
  const planner::OverlapLimits limits = limits_of(trace);
  for (const Arrangement arrangement : every<Arrangement>()) {
    Result<IterationPlan> plan = planner::iteration_named(name, scenario, arrangement, limits);
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
