#pragma once

#include <optional>
#include <span>
#include <string>
#include <vector>

#include <nlohmann/json_fwd.hpp>

#include "plan/plan.hpp"
#include "planner/make_schedule.hpp"
#include "report/adapted_stream.hpp"
#include "scenario/scenario.hpp"

namespace longhaul::report {

/// A schedule of replicas that train together (GradientSync::compressed) as a stream: iterations
/// without a barrier, from the start of the weather on.
struct StreamReport {
  std::string schedule;
  std::vector<Duration> iteration_start;  ///< of the first block of each
  std::optional<Duration> period;         ///< mean of those of the second half
  /// Of the parts of all replicas in iterations floor(N/2) to N-3: those whose F met the update of
  /// the iteration before.
  std::optional<double> fresh_share;
  std::vector<int> fresh_parts;  ///< that did so always and everywhere, by number in the model
  int parts = 0;                 ///< of the model
  Bytes wan_bytes;  ///< of an iteration, from a datacenter to another: of the pair with most
  std::optional<AdaptationReport> adaptation{};  ///< with [train.adapt]; then `wan_bytes` is before
};

/// Bytes of an iteration of the plan over the ordered pair of datacenters with most.
[[nodiscard]] Bytes busiest_way(const Plan& plan);

/// The parts that an op of the plan uses first, and the op that brings their weights up to date:
/// the weak dependencies of blocks.
/// `settings`: what changes while it runs.
[[nodiscard]] StreamReport stream_report(const Plan& plan, const Scenario& scenario, int iterations,
                                         std::vector<plan::StreamSetting> settings = {});
/// The same with the controller of [train.adapt] beside it, which sees the telemetry of complete
/// iterations and changes batches and rate of later ones. Throws Error where it has nothing to
/// adapt.
[[nodiscard]] StreamReport adapted_stream(const Schedule& schedule, const Scenario& scenario,
                                          Arrangement arrangement, int iterations);
/// Of schedules of scenarios that train so; empty for others.
[[nodiscard]] std::vector<StreamReport> all_streams(
    std::span<const planner::ScheduleResult> schedules, const Scenario& scenario,
    Arrangement arrangement, int iterations);

[[nodiscard]] nlohmann::ordered_json stream_json(const StreamReport& stream);
[[nodiscard]] std::string streams_text(std::span<const StreamReport> streams);

}  // namespace longhaul::report
