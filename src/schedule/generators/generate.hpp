#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.hpp"
#include "scenario/scenario.hpp"
#include "schedule/generators/registry.hpp"
#include "schedule/schedule.hpp"

namespace longhaul::schedule {

struct Generator;

/// Names of the static schedules, in the order of a report: gpipe, 1f1b, interleaved-1f1b, zb-h1,
/// zb-h2, zbv, zbv-auto.
[[nodiscard]] std::span<const std::string> static_schedule_names();

/// Makes the schedule `name` for the scenario (its P, M, v, replicas, recompute). Throws Error for
/// an unknown name (with the nearest known one) and where the schedule is not defined (interleaved
/// 1F1B needs M divisible by P), saying what would make it so.
[[nodiscard]] Schedule generate(std::string_view name, const Scenario& scenario);
/// The same, where a schedule that is not defined is an answer.
Result<Schedule> try_generate(const Generator& generator, const Scenario& scenario);

/// The schedule that generate() hands to a generator: everything but the blocks. Refused where
/// there would be too many to hold.
Result<Schedule> empty_schedule(const Generator& generator, const Scenario& scenario);

}  // namespace longhaul::schedule
