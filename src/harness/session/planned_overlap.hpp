#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "collective/iteration/iteration_times.hpp"
#include "planner/overlap/evaluate_overlap.hpp"

namespace longhaul::harness {

struct PlannedSchedule;

/// An iteration under an overlap: how it does, simulated, and what the ops of its plan are.
struct PlannedOverlap {
  planner::OverlapResult predicted;
  collective::LoweredIteration lowered;
};

/// What an overlap did in an iteration, of the rank that the prediction is about.
struct OverlapMeasurement {
  planner::OverlapResult predicted;
  collective::Exposure measured;  ///< in the iteration whose makespan is the median
};

/// What a rank is to know of an iteration under an overlap: one alone writes the record.
enum class OverlapFacts : std::uint8_t { plan, plan_and_prediction };

/// Plans a schedule under the overlap of that name, instead of its blocks: operators, and
/// collectives as messages. Its name becomes that of both, "gpipe+zero3". Throws Error as
/// `simulate --overlap` refuses.
void plan_overlap(PlannedSchedule& planned, const std::string& overlap, const Scenario& scenario,
                  Arrangement arrangement, OverlapFacts facts);

/// Times of all ops of an iteration; nullopt where nothing is known of an overlap.
[[nodiscard]] std::optional<collective::Exposure> exposure_of(const PlannedSchedule& planned,
                                                              const OpTimes& times);

}  // namespace longhaul::harness
