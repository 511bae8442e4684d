#include "harness/records/pipeline_record.hpp"

#include <algorithm>

#include <fmt/ranges.h>

#include "base/table.hpp"
#include "base/unit_text.hpp"
#include "harness/records/sample_report.hpp"
#include "harness/session/check_report.hpp"
#include "report/record_file.hpp"
#include "report/tables.hpp"

namespace longhaul::harness {
namespace {

using nlohmann::ordered_json;

std::int64_t whole_ns(double ns) { return static_cast<std::int64_t>(ns + 0.5); }

Duration mean_of(Duration total, std::int64_t count) {
  return count > 0 ? total / count : Duration::zero();
}

ordered_json memory_json(const std::vector<schedule::DeviceNeed>& devices) {
  ordered_json json = ordered_json::array();
  for (const schedule::DeviceNeed& device : devices)
    json.push_back({{"device", device.device},
                    {"total_bytes", device.total().count()},
                    {"capacity_bytes", device.capacity ? ordered_json(device.capacity->count())
                                                       : ordered_json(nullptr)},
                    {"fits", device.fits()}});
  return json;
}

bool fits(const PipelineMeasurement& m) {
  return std::ranges::all_of(m.memory, &schedule::DeviceNeed::fits);
}

/// The record of a tool's prediction, under the names that benchmarks use.
ordered_json schedule_json(const PipelineMeasurement& m) {
  ordered_json json;
  json["schedule"] = m.predicted.schedule;
  json["predicted_ns"] = m.predicted.makespan_ns;
  json["n"] = m.summary.n;
  json["measured_median_ns"] = whole_ns(m.summary.median);
  json["measured_min_ns"] = whole_ns(m.summary.min);
  json["measured_p95_ns"] = whole_ns(m.summary.p95);
  add_sample(json, m.makespans_ns, m.summary, m.measured.tokens_per_second, m.measured.makespan_ns);
  json["difference_percent"] = m.difference_percent();
  if (m.straggling) {
    json["predicted_straggling_ns"] = m.straggling->count();
    json["straggling_difference_percent"] = m.straggling_difference_percent();
  }
  if (m.weather) json["weather"] = weather_json(m);
  if (m.real) json["real"] = real_json(*m.real);
  json["check"] = check_text(m.checks);
  json["checks"] = checks_json(m.checks);
  json["wrong_messages"] = m.wrong_messages;
  json["over_budget"] = m.predicted.over_budget;
  json["fits"] = fits(m);
  json["memory"] = memory_json(m.memory);
  for (const double ns : m.makespans_ns) json["samples_ns"].push_back(whole_ns(ns));
  json["real_transfer"] = {{"n", m.transfers},
                           {"mean_ns", mean_of(m.transfer_total, m.transfers).count()},
                           {"longest_ns", m.transfer_longest.count()}};
  json["lease"] = {{"n", m.lease.leases},
                   {"mean_ns", mean_of(m.lease.total, m.lease.leases).count()},
                   {"longest_ns", m.lease.longest.count()}};
  json["measured"] = report::to_json(m.measured);
  json["predicted"] = report::to_json(m.predicted);
  return json;
}

/// Facts of the search that found a schedule; null: it was generated or read.
nlohmann::json planning_of(const std::string& schedule, const PipelineInput& input) {
  const auto found = std::ranges::find(
      input.schedules, schedule,
      [](const PlannedSchedule& planned) -> const auto& { return planned.schedule.name; });
  return found == input.schedules.end() ? nullptr : found->planning;
}

std::string peak_text(const PipelineMeasurement& m) {
  const auto highest = std::ranges::max_element(m.measured.peak_activation);
  return fmt::format("{:.2f}{}", highest == m.measured.peak_activation.end() ? 0.0 : *highest,
                     m.predicted.over_budget.empty() ? "  " : " !");
}

std::string notes(const std::vector<PipelineMeasurement>& measurements,
                  const PipelineInput& input) {
  std::string text;
  for (const PipelineMeasurement& m : measurements)
    if (!m.predicted.over_budget.empty())
      text += fmt::format("! {} is over its memory budget on device {}\n", m.predicted.schedule,
                          fmt::join(m.predicted.over_budget, ", "));
  for (const PipelineMeasurement& m : measurements)
    if (m.straggling)
      text += fmt::format("{}: with run.stragglers {} are predicted; measured {:+.2f}%\n",
                          m.predicted.schedule, to_text(*m.straggling),
                          m.straggling_difference_percent());
  for (const PipelineMeasurement& m : measurements)
    text += stopping_note(m.predicted.schedule, input.stopping, m.makespans_ns) +
            outlier_note(m.predicted.schedule, m.makespans_ns, m.summary);
  engine::LeaseCost lease;
  for (const PipelineMeasurement& m : measurements) lease += m.lease;
  if (lease.leases > 0)
    text += fmt::format("leases of shared links: {}, {} each, {} at most\n", lease.leases,
                        to_text(mean_of(lease.total, lease.leases)), to_text(lease.longest));
  for (const PipelineMeasurement& m : measurements)
    text += message_notes(m.predicted.schedule, m.checks, m.wrong_messages);
  for (const PipelineMeasurement& m : measurements)
    for (const schedule::DeviceNeed& device : m.memory)
      if (!device.fits())
        text += fmt::format("! {} does not fit on device {}: {} of {}\n", m.predicted.schedule,
                            device.device, to_text(device.total()), to_text(*device.capacity));
  for (const PlannedSchedule& planned : input.schedules)
    if (!planned.planning.is_null())
      text += fmt::format("{}: found from {}, {} moves tried\n", planned.schedule.name,
                          planned.planning["started_from"].get<std::string>(),
                          planned.planning["moves_tried"].get<std::int64_t>());
  for (const planner::SkippedSchedule& skipped : input.skipped)
    text += fmt::format("skipped {}: {}\n", skipped.schedule, skipped.reason);
  return text;
}

/// Without emulation the two are about different networks.
std::string network_note(const PipelineOptions& options) {
  if (options.emulate == "on") return "";
  return "emulation is off: measured over the network as it is; predicted is what the scenario's "
         "links would give\n";
}

}  // namespace

ordered_json pipeline_record(const std::vector<PipelineMeasurement>& measurements,
                             const PipelineInput& input, const PipelineOptions& options,
                             const nlohmann::json& environment) {
  ordered_json record = report::record_header({.benchmark = "bench_pipeline",
                                               .numbers = "measured",
                                               .creator = "bench_pipeline",
                                               .command_line = options.command_line});
  record["comm"] = options.comm;
  record["emulate"] = options.emulate;
  record["compute"] = compute_json(options.compute);
  record["costs_measured"] = costs_are_measured(input, options);
  record["network"] = options.emulate == "on" ? "emulated" : "as it is";
  record["predicted_for"] = "the links of the scenario";
  add_weather(record, measurements, input, options);
  record["lateness_credit_ns"] = parse_duration(options.credit).count();
  record["payload_bytes"] = parse_bytes(options.payload).count();
  record["iterations"] = input.iterations;
  record["stopping"] = rule_json(input.stopping);
  record["warmup"] = input.warmup;
  record["time_scale"] = input.time_scale;
  record["scenario"] = input.scenario.text;
  record["environment"] = environment;
  record["schedules"] = ordered_json::array();
  for (const PipelineMeasurement& m : measurements) {
    record["schedules"].push_back(schedule_json(m));
    record["schedules"].back()["stopped"] = stopped_json(input.stopping, m.makespans_ns);
    const auto planning = planning_of(m.predicted.schedule, input);
    if (!planning.is_null()) record["schedules"].back()["planning"] = planning;
  }
  record["skipped"] = ordered_json::array();
  for (const planner::SkippedSchedule& skipped : input.skipped)
    record["skipped"].push_back({{"schedule", skipped.schedule}, {"reason", skipped.reason}});
  return record;
}

std::string pipeline_table(const std::vector<PipelineMeasurement>& measurements,
                           const PipelineInput& input, const PipelineOptions& options) {
  double largest = 0;
  for (const PipelineMeasurement& m : measurements) largest = std::max(largest, m.summary.p95);
  const report::TimeScale scale{largest};
  const bool data_parallel = std::ranges::any_of(
      measurements, [](const auto& m) { return m.measured.dp_overlap.has_value(); });
  std::vector<Table::Column> columns{{"schedule", Align::left},
                                     {fmt::format("predicted [{}]", scale.unit())},
                                     {"gap [%]"},
                                     {"median"},
                                     {"95% CI of median"},
                                     {"min"},
                                     {"p95"},
                                     {"n"},
                                     {"diff [%]"},
                                     {"bubble [%]"},
                                     {"peak act."}};
  if (data_parallel) columns.push_back({"DP overlap [%]"});
  if (input.compute.real) columns.push_back({"loss"});
  columns.push_back({"check", Align::left});
  Table table{columns};
  std::vector<report::ScheduleRecord> measured, predicted;
  for (const PipelineMeasurement& m : measurements) {
    const SampleSummary& s = m.summary;
    std::vector<std::string> cells{
        m.predicted.schedule,
        scale.text(static_cast<double>(m.predicted.makespan_ns)),
        m.predicted.gap() ? report::percent_text(*m.predicted.gap()) : "-",
        scale.text(s.median),
        interval_text(s, scale),
        scale.text(s.min),
        scale.text(s.p95),
        std::to_string(s.n),
        fmt::format("{:+.2f}", m.difference_percent()),
        report::percent_text(report::mean(m.measured.bubble_ratio)),
        peak_text(m)};
    if (data_parallel)
      cells.push_back(m.measured.dp_overlap ? report::percent_text(*m.measured.dp_overlap) : "-");
    if (input.compute.real) cells.push_back(loss_text(m));
    cells.push_back(check_text(m.checks));
    table.add_row(std::move(cells));
    measured.push_back(m.measured);
    predicted.push_back(m.predicted);
  }
  return table.text() + real_note(measurements, input, options) + network_note(options) +
         weather_table(measurements, input, options) + notes(measurements, input) +
         report::bound_table_text(predicted) +
         "\nwhere the idle time went, measured, % of device time\n" +
         report::idle_table_text(measured) + busy_table(measurements);
}

}  // namespace longhaul::harness
