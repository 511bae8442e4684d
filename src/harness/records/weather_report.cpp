#include <algorithm>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "base/table.hpp"
#include "harness/records/pipeline_record.hpp"
#include "harness/session/schedule_session.hpp"
#include "plan/link_model/weather.hpp"

namespace longhaul::harness {
namespace {

using Json = nlohmann::json;
using nlohmann::ordered_json;

std::vector<double> nanoseconds(const std::vector<Duration>& durations) {
  std::vector<double> result;
  for (const Duration duration : durations) result.push_back(static_cast<double>(duration.count()));
  return result;
}

std::vector<std::int64_t> counts(const std::vector<Duration>& durations) {
  std::vector<std::int64_t> result;
  for (const Duration duration : durations) result.push_back(duration.count());
  return result;
}

/// Difference of each iteration from its prediction, in percent of the prediction.
std::vector<double> differences(const PipelineMeasurement& m) {
  std::vector<double> result;
  for (std::size_t i = 0; i < m.weather->predicted.size(); ++i) {
    const auto predicted = static_cast<double>(m.weather->predicted[i].count());
    result.push_back(predicted > 0 ? 100.0 * (m.makespans_ns[i] / predicted - 1.0) : 0.0);
  }
  return result;
}

/// True where the scenario has weather, whether or not it is played.
bool has_weather(const PipelineInput& input) {
  return std::ranges::any_of(input.schedules, [&](const PlannedSchedule& planned) {
    return !plan::Weather{planned.plan, input.scenario}.calm();
  });
}

ordered_json rate_json(Bandwidth rate) {
  return rate.is_unlimited() ? ordered_json(nullptr) : ordered_json(rate.bits_per_second());
}

ordered_json states_json(const Link& link) {
  ordered_json states = ordered_json::array();
  if (!link.weather.trace) return states;
  const LinkTrace& trace = *link.weather.trace;
  for (const LinkState& state : trace.states)
    states.push_back(
        {{"at_ns", state.at.count()},
         {"latency_ns", (trace.gives_latency ? state.latency : link.latency).count()},
         {"bits_per_second", rate_json(trace.gives_bandwidth ? state.bandwidth : link.bandwidth)}});
  return states;
}

bool is_played(const std::vector<PipelineMeasurement>& measurements) {
  return std::ranges::any_of(measurements, [](const auto& m) { return m.weather.has_value(); });
}

std::string word_of(const std::vector<PipelineMeasurement>& measurements,
                    const PipelineInput& input, const PipelineOptions& options) {
  if (is_played(measurements)) return "played";
  return options.emulate == "off" && has_weather(input) ? "not played: emulation is off" : "none";
}

ordered_json weather_of_links(const Scenario& scenario) {
  ordered_json links = ordered_json::array();
  for (const Link& link : scenario.links) {
    if (!link.weather.any() && !link.jitter.any()) continue;
    ordered_json entry = {{"from", scenario.datacenters[index(link.from)].name},
                          {"to", scenario.datacenters[index(link.to)].name},
                          {"latency_ns", link.latency.count()},
                          {"bits_per_second", rate_json(link.bandwidth)},
                          {"states", states_json(link)}};
    if (link.weather.repeat) entry["repeat_ns"] = link.weather.repeat->count();
    entry["jitter"] = {{"latency", link.jitter.latency},
                       {"transfer", link.jitter.transfer},
                       {"correlation", link.jitter.correlation}};
    entry["loss_probability"] = link.weather.loss.probability;
    entry["outages_ns"] = ordered_json::array();
    for (const Outage& outage : link.weather.outages)
      entry["outages_ns"].push_back({outage.begin.count(), outage.length.count()});
    links.push_back(std::move(entry));
  }
  return links;
}

}  // namespace

void add_weather(ordered_json& record, const std::vector<PipelineMeasurement>& measurements,
                 const PipelineInput& input, const PipelineOptions& options) {
  record["weather"] = word_of(measurements, input, options);
  record["weather_of_links"] = weather_of_links(input.scenario);
}

ordered_json weather_json(const PipelineMeasurement& m) {
  if (!m.weather) return nullptr;
  const SampleSummary predicted = summarize(nanoseconds(m.weather->predicted));
  return {{"predicted_median_ns", static_cast<std::int64_t>(predicted.median + 0.5)},
          {"difference_percent", summarize(differences(m)).median},
          {"begin_ns", counts(m.weather->begins)},
          {"predicted_ns", counts(m.weather->predicted)}};
}

Json weather_environment(const std::vector<PipelineMeasurement>& measurements) {
  Json result;
  for (const PipelineMeasurement& m : measurements)
    if (m.weather)
      result.push_back({{"schedule", m.predicted.schedule},
                        {"first_iteration", m.first_iteration},
                        {"begin_ns", counts(m.weather->begins)},
                        {"predicted_ns", counts(m.weather->predicted)}});
  return result;
}

std::string weather_table(const std::vector<PipelineMeasurement>& measurements,
                          const PipelineInput& input, const PipelineOptions& options) {
  if (options.emulate == "off" && has_weather(input))
    return "the scenario's weather (trace, outage, jitter, loss of links) is neither played nor "
           "predicted\n";
  if (!is_played(measurements)) return "";
  double largest = 0;
  for (const PipelineMeasurement& m : measurements) largest = std::max(largest, m.summary.max);
  const report::TimeScale scale{largest};
  Table table{{{"schedule", Align::left},
               {fmt::format("predicted [{}]", scale.unit())},
               {"lowest to highest"},
               {"measured"},
               {"diff [%]"},
               {"lowest to highest"}}};
  for (const PipelineMeasurement& m : measurements) {
    if (!m.weather) continue;
    const SampleSummary predicted = summarize(nanoseconds(m.weather->predicted));
    const SampleSummary difference = summarize(differences(m));
    table.add_row({m.predicted.schedule, scale.text(predicted.median),
                   fmt::format("{} to {}", scale.text(predicted.min), scale.text(predicted.max)),
                   scale.text(m.summary.median), fmt::format("{:+.2f}", difference.median),
                   fmt::format("{:+.2f} to {:+.2f}", difference.min, difference.max)});
  }
  return "\nin the weather: medians over the iterations, each predicted for the weather that it "
         "met\n" +
         table.text();
}

}  // namespace longhaul::harness
