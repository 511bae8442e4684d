#include "harness/session/planned_overlap.hpp"

#include <utility>

#include "base/unit_text.hpp"
#include "collective/overlap/overlaps.hpp"
#include "harness/session/pipeline_input.hpp"

namespace longhaul::harness {
namespace {

/// Blocks are timed and take no memory: what does not fit runs all the same.
void warn_of_peak(const planner::OverlapResult& result) {
  if (result.fits()) return;
  fmt::print(stderr,
             "longhaul: {} under {} does not fit on rank {}: {} are needed and its device has {} "
             "(it runs all the same, and is marked)\n",
             result.schedule, result.overlap, number(result.rank), to_text(result.peak),
             to_text(*result.capacity));
}

}  // namespace

void plan_overlap(PlannedSchedule& planned, const std::string& overlap, const Scenario& scenario,
                  Arrangement arrangement, OverlapFacts facts) {
  const collective::Overlap& how = *collective::parse_overlaps(overlap).front();
  const std::string schedule = planned.schedule.name;
  planned.schedule.name = fmt::format("{}+{}", schedule, overlap);
  const collective::IterationPlan iteration =
      collective::overlapped(how, planned.schedule, scenario, arrangement).or_throw();
  planner::SimulatedIteration simulated = planner::simulate_all_ranks(iteration).or_throw();
  planned.plan = simulated.lowered.plan;
  planned.predicted = std::move(simulated.times);
  planned.overlap = std::make_shared<PlannedOverlap>();
  if (facts == OverlapFacts::plan_and_prediction) {
    planned.overlap->lowered = std::move(simulated.lowered);
    planned.overlap->predicted =
        planner::evaluate_overlap(how, planned.schedule, scenario, arrangement).or_throw();
    planned.overlap->predicted.schedule = schedule;
    warn_of_peak(planned.overlap->predicted);
  }
  planned.schedule = *iteration.schedule;
}

std::optional<collective::Exposure> exposure_of(const PlannedSchedule& planned,
                                                const OpTimes& times) {
  if (!planned.overlap || planned.overlap->lowered.first_operation.empty()) return std::nullopt;
  return collective::IterationTimes{planned.overlap->lowered, times}.exposure(
      planned.overlap->predicted.rank);
}

}  // namespace longhaul::harness
