#include <algorithm>

#include <nlohmann/json.hpp>

#include "base/table.hpp"
#include "cli/command/commands.hpp"
#include "cli/trace/trace_source.hpp"
#include "report/record.hpp"
#include "report/record_file.hpp"
#include "report/tables.hpp"

namespace longhaul::cli {
namespace {

using nlohmann::ordered_json;

struct Summary {
  std::string schedule;
  SampleSummary measured;  ///< of makespans in ns; n == 0: none
  std::optional<double> predicted_ns;
  std::optional<double> bubble;            ///< measured, mean over iterations and ranks
  std::optional<double> predicted_bubble;  ///< mean over ranks
  trace::IterationReport legs;             ///< an iteration: predicted, otherwise measured

  /// How much longer the measured median is than the prediction, as a ratio.
  [[nodiscard]] std::optional<double> difference() const {
    if (measured.n == 0 || !predicted_ns || *predicted_ns <= 0) return std::nullopt;
    return measured.median / *predicted_ns - 1.0;
  }
};

Summary summary_of(const trace::Trace& trace, const std::string& schedule) {
  Summary summary;
  summary.schedule = schedule;
  const auto measured = reports_of(trace.measured, schedule, 0);
  std::vector<double> makespans, bubbles;
  for (const trace::IterationReport& report : measured) {
    makespans.push_back(static_cast<double>(report.makespan_ns));
    bubbles.push_back(report::mean(report.bubble_ratio));
  }
  if (!measured.empty()) {
    summary.measured = summarize(makespans);
    summary.bubble = report::mean(bubbles);
    summary.legs = measured.front();
  }
  const auto predicted = reports_of(trace.predicted, schedule, 0);
  if (!predicted.empty()) {
    summary.predicted_ns = static_cast<double>(predicted.front().makespan_ns);
    summary.predicted_bubble = report::mean(predicted.front().bubble_ratio);
    summary.legs = predicted.front();
  }
  return summary;
}

template <typename Value>
ordered_json or_null(const std::optional<Value>& value) {
  return value ? ordered_json(*value) : ordered_json(nullptr);
}

ordered_json to_json(const Summary& summary) {
  const SampleSummary& sample = summary.measured;
  const auto measured = [&](double value) {
    return sample.n == 0 ? ordered_json(nullptr) : ordered_json(value);
  };
  ordered_json json;
  json["schedule"] = summary.schedule;
  json["n"] = sample.n;
  json["measured_min_ns"] = measured(sample.min);
  json["measured_median_ns"] = measured(sample.median);
  const auto& interval = sample.median_interval;
  json["measured_median_low_ns"] = interval ? ordered_json(interval->low) : nullptr;
  json["measured_median_high_ns"] = interval ? ordered_json(interval->high) : nullptr;
  json["measured_p95_ns"] = measured(sample.p95);
  json["predicted_ns"] = or_null(summary.predicted_ns);
  const auto difference = summary.difference();
  json["difference_percent"] = difference ? ordered_json(100.0 * *difference) : nullptr;
  json["measured_bubble_ratio"] = or_null(summary.bubble);
  json["predicted_bubble_ratio"] = or_null(summary.predicted_bubble);
  json["legs"] = report::legs_json(summary.legs);
  json["wan_busy_ns"] = summary.legs.wan_busy_ns;
  json["traffic"] = report::traffic_json(summary.legs.traffic);
  return json;
}

/// What the run sent of its messages, as its record says; null in traces that do not know it.
ordered_json sent_of(const trace::RunInfo& info) {
  const ordered_json environment = ordered_json::parse(info.environment, nullptr, false);
  const bool known =
      environment.is_object() && environment.contains("sent") && environment["sent"].is_object();
  return known ? environment["sent"] : ordered_json(nullptr);
}

std::string sent_line(const ordered_json& sent) {
  const auto text = sent.is_null() ? sent.end() : sent.find("text");
  if (text == sent.end() || !text->is_string()) return "";
  return fmt::format("messages: {}\n", text->get<std::string>());
}

/// Times of a trace are those of the run, not the scenario's own.
std::string scale_line(const trace::RunInfo& info) {
  return info.time_scale == 1
             ? ""
             : fmt::format("times as played: time_scale {} of the scenario's own\n",
                           info.time_scale);
}

std::string text_of(const std::vector<Summary>& summaries, TableWidth width) {
  double largest = 0;
  for (const Summary& summary : summaries)
    largest = std::max({largest, summary.measured.p95, summary.predicted_ns.value_or(0)});
  const report::TimeScale scale{largest};
  Table table{{{"schedule", Align::left},
               {"n"},
               {fmt::format("min [{}]", scale.unit())},
               {"median"},
               {"p95"},
               {"predicted"},
               {"difference [%]"},
               {"bubble [%]"},
               {"predicted bubble [%]"}}};
  const auto ratio = [](const std::optional<double>& value, const char* format) {
    return value ? fmt::format(fmt::runtime(format), 100.0 * *value) : std::string{"-"};
  };
  for (const Summary& summary : summaries) {
    const SampleSummary& sample = summary.measured;
    const auto measured = [&](double value) {
      return sample.n == 0 ? std::string{"-"} : scale.text(value);
    };
    table.add_row({summary.schedule, std::to_string(sample.n), measured(sample.min),
                   measured(sample.median), measured(sample.p95),
                   summary.predicted_ns ? scale.text(*summary.predicted_ns) : "-",
                   ratio(summary.difference(), "{:+.2f}"), ratio(summary.bubble, "{:.1f}"),
                   ratio(summary.predicted_bubble, "{:.1f}")});
  }
  std::vector<report::LegsOfSchedule> legs;
  std::vector<report::TrafficOfSchedule> traffic;
  for (const Summary& summary : summaries) {
    legs.push_back({summary.schedule, summary.legs});
    traffic.push_back({summary.schedule, summary.legs.traffic});
  }
  return table.text(width) + report::traffic_table_text(traffic) + report::leg_table_text(legs);
}

}  // namespace

Answer trace_summary_command(const Options& options) {
  const trace::Trace trace = load_trace(options.files.front(), options);
  std::vector<Summary> summaries;
  for (const std::string& schedule : traced_schedules(trace, options))
    summaries.push_back(summary_of(trace, schedule));
  const ordered_json sent = sent_of(trace.info);
  if (!options.json)
    return {text_of(summaries, table_width(options)) + sent_line(sent) + scale_line(trace.info)};
  ordered_json json = report::record_header();
  json["trace"] = options.files.front();
  json["creator"] = trace.info.creator;
  json["git_commit"] = trace.info.git_commit;
  json["command_line"] = trace.info.command_line;
  json["time_scale"] = trace.info.time_scale;
  json["sent"] = sent;
  json["schedules"] = ordered_json::array();
  for (const Summary& summary : summaries) json["schedules"].push_back(to_json(summary));
  return {report::json_text(json)};
}

}  // namespace longhaul::cli
