#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include <nlohmann/json.hpp>

#include "collective/iteration/iteration_times.hpp"
#include "planner/overlap/evaluate_overlap.hpp"

namespace longhaul::harness {

struct PlannedSchedule;

/// An iteration under an overlap: how it does, simulated, and what the ops of its plan are.
struct PlannedOverlap {
  planner::OverlapResult predicted;
  std::optional<collective::IterationPlan> iteration;
  collective::LoweredIteration lowered;
};

/// What an overlap did in an iteration, of the rank that the prediction is about.
struct OverlapMeasurement {
  planner::OverlapResult predicted;
  collective::Exposure measured;  ///< in the iteration whose makespan is the median
};

/// What a rank is to know of an iteration under an overlap: those that compute it what its ops are,
/// the one that writes the record that and the prediction.
enum class OverlapFacts : std::uint8_t { plan, work, work_and_prediction };

/// For rank 0: searches a schedule's iteration under an overlap, as far as `watch` lets it, once
/// for all ranks. Null: the overlap has a pass of its own, which each rank takes. Throws Error as
/// `simulate
/// --overlap` refuses.
[[nodiscard]] nlohmann::json searched_overlap(const std::string& overlap, const Schedule& schedule,
                                              const Scenario& scenario, Arrangement arrangement,
                                              const planner::OverlapLimits& limits,
                                              const planner::SearchWatch& watch);

/// Plans a schedule under the overlap of that name, instead of its blocks: operators, and
/// collectives as messages. Its name becomes that of both, "gpipe+zero3". `searched` is what rank 0
/// found. Throws Error as `simulate --overlap` refuses.
void plan_overlap(PlannedSchedule& planned, const std::string& overlap,
                  const nlohmann::json& searched, const Scenario& scenario, Arrangement arrangement,
                  OverlapFacts facts);

/// Times of all ops of an iteration; nullopt where nothing is known of an overlap.
[[nodiscard]] std::optional<collective::Exposure> exposure_of(const PlannedSchedule& planned,
                                                              const OpTimes& times);

}  // namespace longhaul::harness
