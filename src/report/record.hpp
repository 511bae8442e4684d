#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include <nlohmann/json_fwd.hpp>

#include "base/table.hpp"
#include "plan/rows.hpp"
#include "planner/bounds/bounds.hpp"
#include "planner/collectives/grain.hpp"
#include "report/granularity.hpp"
#include "scenario/scenario.hpp"
#include "schedule/memory.hpp"
#include "schedule/schedule.hpp"
#include "trace/report/report.hpp"

namespace longhaul::report {

/// The results of one schedule on one scenario. One record feeds the table and the JSON.
struct ScheduleRecord {
  std::string schedule;
  planner::Grain grain = planner::Grain::steps;  ///< of the collectives that its times come from
  std::int64_t makespan_ns = 0;                  ///< without what the optimizer's steps add
  std::int64_t iteration_ns = 0;                 ///< with it
  std::int64_t device_span_ns = 0;
  double per_microbatch_ns = 0;
  std::vector<double> bubble_ratio;     ///< per rank
  std::vector<double> peak_activation;  ///< per device, the largest over replicas, in activations
                                        ///< of the largest stage
  std::vector<int> over_budget;         ///< devices
  std::vector<schedule::DeviceNeed> too_large;  ///< for their devices' capacity
  int wan_crossings_on_critical_path = 0;
  /// No schedule with its placement and memory ends before; absent where no one asked for it.
  std::optional<planner::Bound> bound;
  trace::IdleTime idle;
  std::array<trace::TaskUse, kCountOf<TaskKind>> tasks{};  ///< index: TaskKind
  std::optional<double> dp_overlap;          ///< where data-parallel communication takes time
  std::optional<double> tokens_per_second;   ///< where the model is known
  std::optional<double> mfu;                 ///< where the GPU's peak rate is known too
  std::vector<plan::ResourceUse> resources;  ///< all but devices
  std::vector<trace::Traffic> traffic;       ///< by pair of datacenters
  std::optional<OperatorReport> operators;   ///< at operator granularity

  /// How far the makespan is above the bound, as a ratio; nullopt without a bound.
  [[nodiscard]] std::optional<double> gap() const {
    if (!bound) return std::nullopt;
    return planner::gap(Duration{makespan_ns}, *bound);
  }
};

/// A bound takes several times as long as the rest of a record.
enum class Bounds : std::uint8_t { left_out, computed };

/// Without `resources` and `grain`.
[[nodiscard]] ScheduleRecord make_record(const trace::IterationReport& report,
                                         const Schedule& schedule, const Scenario& scenario,
                                         Bounds bounds = Bounds::computed);

[[nodiscard]] nlohmann::ordered_json to_json(const ScheduleRecord& record);
/// ns by name of part; those of tasks only where they are not 0.
[[nodiscard]] nlohmann::ordered_json to_json(const trace::IdleTime& idle);
/// Of the kinds that there are: {"host_task": {"tasks", "busy_ns", "work_ns"}}.
[[nodiscard]] nlohmann::ordered_json to_json(
    const std::array<trace::TaskUse, kCountOf<TaskKind>>& tasks);

/// A line for each schedule, and below it the bounds of the gaps and the meaning of the marks; DP
/// overlap where there is DP communication, tokens/s and MFU where known.
[[nodiscard]] std::string table_text(std::span<const ScheduleRecord> records,
                                     const Scenario& scenario,
                                     TableWidth width = TableWidth::whole);
/// Where the idle time went, in % of device time; parts that are 0 everywhere are left out.
[[nodiscard]] std::string idle_table_text(std::span<const ScheduleRecord> records,
                                          TableWidth width = TableWidth::whole);

/// Prints times of one column in one unit, so that they compare at a glance.
class TimeScale {
public:
  /// Picks the unit of the largest time that is to be shown.
  explicit TimeScale(double largest_ns);
  [[nodiscard]] const char* unit() const { return unit_; }
  /// Four significant digits of the largest time.
  [[nodiscard]] std::string text(double time_ns) const;

private:
  const char* unit_;
  double factor_;
  int decimals_;
};

/// "12.3" for 0.1234.
[[nodiscard]] std::string percent_text(double ratio);
/// "0-3, 8" for ascending numbers.
[[nodiscard]] std::string ranges_text(std::span<const int> numbers);
/// The mean, 0 of nothing.
[[nodiscard]] double mean(std::span<const double> values);

/// Tokens of one iteration over its makespan; nullopt without a model.
[[nodiscard]] std::optional<double> tokens_per_second(const Scenario& scenario,
                                                      std::int64_t makespan_ns);
/// FLOPs that the model needs (forward and twice that backward, no recomputation) over what all
/// GPUs could do at their peak in the makespan; nullopt where model or peak is unknown.
[[nodiscard]] std::optional<double> model_flops_utilization(const Scenario& scenario,
                                                            std::int64_t makespan_ns);

}  // namespace longhaul::report
