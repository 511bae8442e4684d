#pragma once

#include <string>
#include <vector>

#include <nlohmann/json_fwd.hpp>

#include "harness/session/schedule_session.hpp"

namespace longhaul::harness {

/// Facts of the machine and of the run that make its times believable, or not.
struct RunConditions {
  double load = 0;  ///< the largest 1-minute average known of the run, on the host with the most
  int cores = 0;    ///< of that host; 0: not known
  int ranks = 0;    ///< of the run on that host
  std::int64_t involuntary_switches = 0;  ///< of all ranks
  bool computes = false;                  ///< blocks are real: their ranks are in the load
  bool is_predicted =
      true;  ///< the prediction is of what ran: links emulated, costs of this device
};
/// `environment` is that of the record (docs/hosts.md); null or incomplete: what is not known is 0.
[[nodiscard]] RunConditions conditions_of(const PipelineInput& input,
                                          const PipelineOptions& options,
                                          const nlohmann::json& environment);

/// Why the times of a schedule say more of this machine than of the scenario, a phrase each: "load
/// 9.0 on 2 cores", "blocks of 150 ns cannot be played here ...". Empty: nothing speaks against
/// them. Rules: docs/metrics.md.
[[nodiscard]] std::vector<std::string> doubts_of(const PipelineMeasurement& played,
                                                 const RunConditions& conditions);

/// The cell of the check: "ok", "ok, doubtful", or what is wrong with messages and blocks.
[[nodiscard]] std::string verdict_text(const PipelineMeasurement& played,
                                       const RunConditions& conditions);
/// A line for each schedule that is doubtful; those with the same doubts share one.
[[nodiscard]] std::string doubts_text(const std::vector<PipelineMeasurement>& played,
                                      const RunConditions& conditions);
/// Percent between the median and the prediction that knows most: of stragglers, of the weather.
[[nodiscard]] double difference_from_best_prediction(const PipelineMeasurement& played);
/// For people: schedules that are more than `most_percent` off, a line each.
[[nodiscard]] std::string missed_text(const std::vector<PipelineMeasurement>& played,
                                      double most_percent);

/// A line: load, cores, involuntary switches, lateness of timers.
[[nodiscard]] std::string conditions_text(const std::vector<PipelineMeasurement>& played,
                                          const RunConditions& conditions);

/// The largest message of all schedules, as the scenario has it.
[[nodiscard]] Bytes largest_message(const std::vector<PipelineMeasurement>& measurements);

/// `total` over `count`; 0 of none.
[[nodiscard]] constexpr Duration mean_of(Duration total, std::int64_t count) {
  return count > 0 ? total / count : Duration::zero();
}

}  // namespace longhaul::harness
