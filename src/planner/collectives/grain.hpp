#pragma once

#include <cstddef>

#include "base/listed_enum.hpp"
#include "base/result.hpp"
#include "plan/plan.hpp"
#include "scenario/scenario.hpp"
#include "schedule/schedule.hpp"

namespace longhaul::planner {

/// What collectives of training are in a plan: messages, one op of each member that holds what its
/// messages hold for as long as they take alone, or an estimate that holds nothing
/// (GradientSync::ring_rate, two_datacenter). Schedules without collectives are `steps`.
#define LONGHAUL_GRAINS(X) X(steps, "steps") X(whole, "whole") X(estimate, "estimate")
LONGHAUL_LISTED_ENUM(Grain, LONGHAUL_GRAINS);

/// The times of a plan that by messages would have more ops are those of `whole`.
inline constexpr std::size_t kMostOpsInSteps = 10'000'000;

/// That in which the times of a schedule are reported. The schedule must be valid.
[[nodiscard]] Grain grain_of(const Schedule& schedule, const Scenario& scenario,
                             std::size_t most_ops = kMostOpsInSteps);

/// A plan whose times are to be reported.
struct ReportedPlan {
  Plan plan;
  Grain grain = Grain::steps;
};
/// plan::try_lower() in that grain. Refused too where a collective is too large to be played alone
/// (kMostMessages).
[[nodiscard]] Result<ReportedPlan> try_lower_reported(const Schedule& schedule,
                                                      const Scenario& scenario,
                                                      Arrangement arrangement,
                                                      std::size_t most_ops = kMostOpsInSteps);
[[nodiscard]] ReportedPlan lower_reported(const Schedule& schedule, const Scenario& scenario,
                                          Arrangement arrangement,
                                          std::size_t most_ops = kMostOpsInSteps);

}  // namespace longhaul::planner
