#include <fmt/format.h>

#include "harness/records/pipeline_record.hpp"

namespace longhaul::harness {

using nlohmann::ordered_json;

std::vector<PipelineMeasurement> segments_of(const std::vector<SwitchingOutcome>& outcomes) {
  std::vector<PipelineMeasurement> all;
  for (const SwitchingOutcome& outcome : outcomes)
    all.insert(all.end(), outcome.segments.begin(), outcome.segments.end());
  return all;
}

void add_changes(ordered_json& record, const std::vector<SwitchingOutcome>& outcomes,
                 const PipelineOptions& options) {
  std::size_t segment = 0;
  for (const SwitchingOutcome& outcome : outcomes)
    for (const PipelineMeasurement& m : outcome.segments)
      record["schedules"][segment++]["first_iteration"] = m.first_iteration;
  if (options.adaptive)
    record["adaptive"] = {{"selects_from", options.schedule},
                          {"threshold_percent", options.switch_threshold_percent},
                          {"least_gain_percent", 100 * AdaptiveScheduler::kLeastGain}};
  record["switches"] = ordered_json::array();
  for (const SwitchingOutcome& outcome : outcomes) {
    for (const RunEvent& event : outcome.events) {
      ordered_json entry = {{"schedule", outcome.segments.front().predicted.schedule},
                            {"iteration", event.iteration},
                            {"event", event.what}};
      entry.update(event.details);
      record["switches"].push_back(std::move(entry));
    }
  }
}

std::string changes_text(const std::vector<SwitchingOutcome>& outcomes) {
  std::string text;
  for (const SwitchingOutcome& outcome : outcomes) {
    if (outcome.events.empty()) continue;
    text += fmt::format("\nwhat happened to {}, by iteration, in times as played\n",
                        outcome.segments.front().predicted.schedule);
    for (const RunEvent& event : outcome.events)
      text += fmt::format("{:>4}  {:<9}  {}{}", event.iteration, event.what, event.text,
                          event.text.ends_with('\n') ? "" : "\n");
  }
  return text;
}

}  // namespace longhaul::harness
