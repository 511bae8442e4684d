#include "harness/session/planned_overlap.hpp"

#include <utility>

#include "base/unit_text.hpp"
#include "collective/iteration/iteration_text.hpp"
#include "collective/overlap/overlaps.hpp"
#include "harness/session/pipeline_input.hpp"
#include "schedule/csv/csv.hpp"

namespace longhaul::harness {
namespace {

using Json = nlohmann::json;
using planner::DecidedIteration;

/// Timed operators take no memory: what does not fit runs all the same.
void warn_of_peak(const planner::OverlapResult& result) {
  if (result.fits()) return;
  fmt::print(stderr,
             "longhaul: {} under {} does not fit on rank {}: {} are needed and its device has {} "
             "(timed operators run all the same, and are marked)\n",
             result.schedule, result.overlap, number(result.overflow->rank),
             to_text(result.overflow->peak), to_text(result.overflow->capacity));
}

Json certificate_json(const planner::OverlapCertificate& certificate) {
  Json json = {{"baselines", Json::array()},         {"is_proof", certificate.is_proof},
               {"decided", certificate.decided},     {"search_ns", certificate.search.count()},
               {"evaluated", certificate.evaluated}, {"is_stopped", certificate.is_stopped}};
  for (const planner::OverlapBaseline& each : certificate.baselines)
    json["baselines"].push_back({{"overlap", each.overlap},
                                 {"makespan_ns", each.makespan.count()},
                                 {"peak_bytes", each.peak.count()},
                                 {"fits", each.fits},
                                 {"grain", planner::to_string(each.grain)}});
  return json;
}

planner::Grain read_grain(const Json& json) {
  return from_string<planner::Grain>(json.value("grain", "")).value_or(planner::Grain::steps);
}

planner::OverlapCertificate read_certificate(const Json& json) {
  planner::OverlapCertificate certificate;
  for (const Json& each : json["baselines"])
    certificate.baselines.push_back(
        {each["overlap"], Duration{each["makespan_ns"].get<std::int64_t>()},
         Bytes{each["peak_bytes"].get<std::int64_t>()}, each["fits"], read_grain(each)});
  certificate.is_proof = json["is_proof"];
  certificate.decided = json["decided"];
  certificate.search = Duration{json["search_ns"].get<std::int64_t>()};
  certificate.evaluated = json["evaluated"];
  certificate.is_stopped = json.value("is_stopped", false);
  return certificate;
}

/// What searched_overlap() wrote.
DecidedIteration read_decided(const Json& searched, const std::string& name,
                              const Scenario& scenario, Arrangement arrangement) {
  Schedule schedule = schedule::read_csv(searched["csv"].get<std::string>(), name, name);
  schedule.name = name;
  DecidedIteration decided;
  decided.plan = collective::read_iteration(searched["iteration"].get<std::string>(), schedule,
                                            scenario, arrangement)
                     .or_throw();
  decided.alpha = searched["alpha"];
  decided.bound = {Duration{searched["lower_bound_ns"].get<std::int64_t>()},
                   searched["bound_reason"].get<std::string>()};
  decided.certificate = read_certificate(searched["certificate"]);
  return decided;
}

}  // namespace

Json searched_overlap(const std::string& overlap, const Schedule& schedule,
                      const Scenario& scenario, Arrangement arrangement,
                      const planner::OverlapLimits& limits, const planner::SearchWatch& watch) {
  const collective::Overlap& how = *collective::parse_overlaps(overlap).front();
  if (!how.is_searched()) return nullptr;
  const DecidedIteration found =
      planner::decided_iteration(how, schedule, scenario, arrangement, limits, watch).or_throw();
  return {{"csv", schedule::write_csv(*found.plan.schedule)},
          {"iteration", collective::to_text(found.plan)},
          {"alpha", found.alpha},
          {"lower_bound_ns", found.bound->lower_bound.count()},
          {"bound_reason", found.bound->reason},
          {"certificate", certificate_json(*found.certificate)}};
}

void plan_overlap(PlannedSchedule& planned, const std::string& overlap, const Json& searched,
                  const Scenario& scenario, Arrangement arrangement, OverlapFacts facts) {
  const collective::Overlap& how = *collective::parse_overlaps(overlap).front();
  const std::string schedule = planned.schedule.name;
  planned.schedule.name = fmt::format("{}+{}", schedule, overlap);
  const bool predicts = facts == OverlapFacts::work_and_prediction;
  DecidedIteration decided;
  if (!searched.is_null())
    decided = read_decided(searched, planned.schedule.name, scenario, arrangement);
  else if (predicts)
    decided = planner::decided_iteration(how, planned.schedule, scenario, arrangement).or_throw();
  else
    decided.plan = collective::overlapped(how, planned.schedule, scenario, arrangement).or_throw();
  planner::SimulatedIteration simulated = planner::simulate_all_ranks(decided.plan).or_throw();
  planned.plan = simulated.lowered.plan;
  planned.predicted = std::move(simulated.times);
  planned.schedule = *decided.plan.schedule;
  planned.overlap = std::make_shared<PlannedOverlap>();
  if (predicts) {
    planned.overlap->predicted = planner::evaluate_iteration(decided, schedule, overlap).or_throw();
    warn_of_peak(planned.overlap->predicted);
  }
  if (facts == OverlapFacts::plan) return;
  planned.overlap->lowered = std::move(simulated.lowered);
  planned.overlap->iteration = std::move(decided.plan);
}

std::optional<collective::Exposure> exposure_of(const PlannedSchedule& planned,
                                                const OpTimes& times) {
  if (!planned.overlap || planned.overlap->lowered.first_operation.empty()) return std::nullopt;
  return collective::IterationTimes{planned.overlap->lowered, times}.exposure(
      planned.overlap->predicted.rank);
}

}  // namespace longhaul::harness
