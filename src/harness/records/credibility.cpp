#include "harness/records/credibility.hpp"

#include <algorithm>
#include <cmath>
#include <utility>

#include <fmt/ranges.h>
#include <nlohmann/json.hpp>

#include "base/unit_text.hpp"
#include "harness/records/pipeline_record.hpp"
#include "harness/session/check_report.hpp"
#include "report/host_load.hpp"

namespace longhaul::harness {
namespace {

using Json = nlohmann::json;

/// A block whose end is seen later than half of its time is not what was to be played.
constexpr double kMostLateness = 0.5;
/// Runs of this suite on a machine that is their own are within it (results/README.md).
constexpr double kMostDifferencePercent = 10;

std::string load_text(const RunConditions& conditions) {
  return report::load_text(report::HostLoad{conditions.load, conditions.cores, conditions.ranks});
}

/// From the prediction that knows most; nullopt where none is of what ran.
std::optional<double> difference_of(const PipelineMeasurement& m, const RunConditions& conditions) {
  if (!conditions.is_predicted || m.weather) return std::nullopt;
  return m.straggling ? m.straggling_difference_percent() : m.difference_percent();
}

}  // namespace

RunConditions conditions_of(const PipelineInput& input, const PipelineOptions& options,
                            const Json& environment) {
  RunConditions conditions;
  conditions.computes = input.compute.real;
  conditions.is_predicted = options.emulate == "on" && input.scenario.run.noise == 0 &&
                            (!input.compute.real || costs_are_measured(input, options));
  if (!environment.is_object()) return conditions;
  conditions.involuntary_switches = environment.value("involuntary_context_switches", 0LL);
  const report::HostLoad host = report::busiest_host(environment);
  conditions.load = host.load;
  conditions.cores = host.cores;
  conditions.ranks = host.ranks;
  return conditions;
}

std::vector<std::string> doubts_of(const PipelineMeasurement& played,
                                   const RunConditions& conditions) {
  std::vector<std::string> doubts;
  const int wanted = conditions.computes ? conditions.ranks : 0;
  if (conditions.cores > 0 && conditions.load > std::max(conditions.cores, wanted))
    doubts.push_back(load_text(conditions));
  const Duration late = mean_of(played.lateness.total, played.lateness.blocks);
  const auto block = static_cast<double>(played.mean_block.count());
  if (!conditions.computes && block > 0 &&
      static_cast<double>(late.count()) > kMostLateness * block)
    doubts.push_back(
        fmt::format("blocks of {} cannot be played here (their ends are seen {} late; a larger "
                    "run.time_scale makes them longer)",
                    to_text(played.mean_block), to_text(late)));
  const auto difference = difference_of(played, conditions);
  if (difference && std::abs(*difference) > kMostDifferencePercent)
    doubts.push_back(fmt::format("measured is {:+.1f}% off the prediction", *difference));
  return doubts;
}

double difference_from_best_prediction(const PipelineMeasurement& played) {
  if (!played.weather)
    return played.straggling ? played.straggling_difference_percent() : played.difference_percent();
  std::vector<double> differences;
  for (std::size_t i = 0; i < played.makespans_ns.size(); ++i)
    differences.push_back(
        100.0 *
        (played.makespans_ns[i] / static_cast<double>(played.weather->predicted.at(i).count()) -
         1.0));
  return summarize(differences).median;
}

std::string missed_text(const std::vector<PipelineMeasurement>& played, double most_percent) {
  std::string text;
  for (const PipelineMeasurement& m : played)
    if (const double difference = difference_from_best_prediction(m);
        std::abs(difference) > most_percent)
      text += fmt::format("! {}: measured is {:+.2f}% off the prediction, more than {:g}%\n",
                          m.predicted.schedule, difference, most_percent);
  return text;
}

std::string verdict_text(const PipelineMeasurement& played, const RunConditions& conditions) {
  const std::string check = check_text(played.checks);
  return check == "ok" && !doubts_of(played, conditions).empty() ? "ok, doubtful" : check;
}

std::string doubts_text(const std::vector<PipelineMeasurement>& played,
                        const RunConditions& conditions) {
  std::vector<std::pair<std::string, std::vector<std::string>>> schedules_of;  // by doubts
  for (const PipelineMeasurement& m : played) {
    const std::vector<std::string> doubts = doubts_of(m, conditions);
    if (doubts.empty()) continue;
    const std::string text = fmt::format("{}", fmt::join(doubts, "; "));
    const auto same = std::ranges::find(schedules_of, text, [](const auto& e) { return e.first; });
    if (same == schedules_of.end())
      schedules_of.push_back({text, {m.predicted.schedule}});
    else
      same->second.push_back(m.predicted.schedule);
  }
  std::string text;
  for (const auto& [doubts, schedules] : schedules_of)
    text += fmt::format("! {}: doubtful: {}\n", fmt::join(schedules, ", "), doubts);
  return text;
}

std::string conditions_text(const std::vector<PipelineMeasurement>& played,
                            const RunConditions& conditions) {
  engine::Lateness lateness;
  for (const PipelineMeasurement& m : played) lateness += m.lateness;
  std::string text;
  if (conditions.cores > 0) text = load_text(conditions) + ", ";
  text += fmt::format("{} involuntary switches", conditions.involuntary_switches);
  if (lateness.blocks > 0)
    text +=
        fmt::format(", ends of blocks seen {} late on average, {} at most",
                    to_text(mean_of(lateness.total, lateness.blocks)), to_text(lateness.longest));
  return "machine: " + text + "\n";
}

Bytes largest_message(const std::vector<PipelineMeasurement>& measurements) {
  Bytes largest{};
  for (const PipelineMeasurement& m : measurements) largest = std::max(largest, m.message);
  return largest;
}

}  // namespace longhaul::harness
