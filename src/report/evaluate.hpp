#pragma once

#include <span>
#include <string>
#include <vector>

#include <nlohmann/json_fwd.hpp>

#include "plan/plan.hpp"
#include "planner/choose_schedules.hpp"
#include "planner/collectives/grain.hpp"
#include "planner/make_schedule.hpp"
#include "report/record.hpp"
#include "scenario/scenario.hpp"
#include "schedule/schedule.hpp"
#include "sim/simulate.hpp"
#include "trace/timeline/timeline.hpp"

namespace longhaul::report {

/// Lowers and simulates. What was looked for (`best`, a solver's) has its bound in any case. Where
/// `timeline` is there, its rows go to its end as iteration 0, those of operators at their
/// granularity. Throws Error where that is asked for and nothing says which operators there are.
/// Collectives of a plan that would have more than `most_ops` by messages are one op of each
/// member.
[[nodiscard]] ScheduleRecord evaluate(const planner::ScheduleResult& made, const Scenario& scenario,
                                      Arrangement arrangement, Bounds bounds,
                                      Timeline* timeline = nullptr,
                                      Granularity granularity = Granularity::blocks,
                                      std::size_t most_ops = planner::kMostOpsInSteps);

/// The records of several schedules in their order, on so many threads (0: all cores, but no more
/// than there is memory for).
[[nodiscard]] std::vector<ScheduleRecord> evaluate_all(
    std::span<const planner::ScheduleResult> schedules, const Scenario& scenario,
    Arrangement arrangement, Bounds bounds, int threads,
    Granularity granularity = Granularity::blocks);

/// One schedule over the iterations of a run under the scenario's weather.
struct UnderWeather {
  std::string schedule;
  Duration calm{};  ///< makespan without weather
  bool varies = false;
  std::vector<sim::PlayedIteration> iterations;  ///< in order of time; not empty
  std::vector<Duration> sorted;                  ///< their makespans

  [[nodiscard]] Duration median() const;  ///< of an even number the mean of the middle two
  /// Time from the first begin to the last end.
  [[nodiscard]] Duration whole() const;
};

/// Throws Error where --iterations is out of range.
void require_iteration_count(int iterations);

/// Plays the schedules one by one; each meets the weather from its start.
[[nodiscard]] std::vector<UnderWeather> all_under_weather(
    std::span<const planner::ScheduleResult> schedules, const Scenario& scenario,
    Arrangement arrangement, int iterations);

[[nodiscard]] std::string under_weather_text(std::span<const UnderWeather> schedules,
                                             const Scenario& scenario);
[[nodiscard]] nlohmann::ordered_json under_weather_json(std::span<const UnderWeather> schedules);

}  // namespace longhaul::report
