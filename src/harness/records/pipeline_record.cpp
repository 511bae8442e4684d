#include "harness/records/pipeline_record.hpp"

#include <algorithm>

#include "base/unit_text.hpp"
#include "harness/options/credit.hpp"
#include "harness/records/credibility.hpp"
#include "harness/records/sample_report.hpp"
#include "harness/session/check_report.hpp"
#include "report/record_file.hpp"

namespace longhaul::harness {
namespace {

using nlohmann::ordered_json;

std::int64_t whole_ns(double ns) { return static_cast<std::int64_t>(ns + 0.5); }

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
  return m.overlap ? m.overlap->predicted.fits()
                   : std::ranges::all_of(m.memory, &schedule::DeviceNeed::fits);
}

/// Times and rates of the scenario itself, as the table has them.
ordered_json own_scale_json(const PipelineMeasurement& m, const PipelineInput& input) {
  const PipelineMeasurement own = at_own_scale(m, input.time_scale);
  const OwnRates rates = own_rates(m, input);
  const auto or_null = [](const std::optional<double>& value) {
    return value ? ordered_json(*value) : ordered_json(nullptr);
  };
  return {{"predicted_ns", own.predicted.makespan_ns},
          {"measured_median_ns", whole_ns(own.summary.median)},
          {"tokens_per_second", or_null(rates.tokens_per_second)},
          {"mfu", or_null(rates.mfu)}};
}

/// The record of a tool's prediction, under the names that benchmarks use.
ordered_json schedule_json(const PipelineMeasurement& m) {
  ordered_json json;
  json["schedule"] = m.predicted.schedule;
  add_overlap(json, m);
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
  json["timer_lateness"] = {{"n", m.lateness.blocks},
                            {"mean_ns", mean_of(m.lateness.total, m.lateness.blocks).count()},
                            {"longest_ns", m.lateness.longest.count()}};
  json["credit"] = credit_json(m.credit);
  json["without_credit"] = {{"measured_median_ns", whole_ns(summarize(m.without_credit_ns).median)},
                            {"difference_percent", m.difference_without_credit_percent()}};
  json["critical_messages"] = m.critical_messages;
  const auto late = m.late_per_message();
  json["late_per_message_ns"] = late ? ordered_json(late->count()) : ordered_json(nullptr);
  json["lease"] = {{"n", m.lease.leases},
                   {"mean_ns", mean_of(m.lease.total, m.lease.leases).count()},
                   {"longest_ns", m.lease.longest.count()},
                   {"between_hosts",
                    {{"n", m.lease.by_words},
                     {"mean_words_ns", mean_of(m.lease.words_total, m.lease.by_words).count()},
                     {"longest_words_ns", m.lease.words_longest.count()}}}};
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

}  // namespace

nlohmann::json credit_environment(const std::vector<PipelineMeasurement>& measurements) {
  nlohmann::json all = nlohmann::json::array();
  for (const PipelineMeasurement& m : measurements) {
    all.push_back(nlohmann::json(credit_json(m.credit)));
    all.back()["schedule"] = m.predicted.schedule;
    all.back()["difference_percent"] = m.difference_percent();
    all.back()["difference_without_credit_percent"] = m.difference_without_credit_percent();
  }
  return all;
}

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
  record["payload_bytes"] = input.sent.caps.message.count();
  record["sent"] = sent_json(input.sent);
  record["iterations"] = input.iterations;
  record["stopping"] = rule_json(input.stopping);
  record["warmup"] = input.warmup;
  record["time_scale"] = input.time_scale;
  record["scenario"] = input.scenario.text;
  record["environment"] = environment;
  const RunConditions conditions = conditions_of(input, options, environment);
  record["message_bytes"] = largest_message(measurements).count();
  record["schedules"] = ordered_json::array();
  for (const PipelineMeasurement& m : measurements) {
    record["schedules"].push_back(schedule_json(m));
    record["schedules"].back()["own_scale"] = own_scale_json(m, input);
    const std::vector<std::string> doubts = doubts_of(m, conditions);
    record["schedules"].back()["credible"] = doubts.empty();
    record["schedules"].back()["doubts"] = doubts;
    record["schedules"].back()["stopped"] = stopped_json(input.stopping, m.makespans_ns);
    const auto planning = planning_of(m.predicted.schedule, input);
    if (!planning.is_null()) record["schedules"].back()["planning"] = planning;
  }
  record["skipped"] = ordered_json::array();
  for (const planner::SkippedSchedule& skipped : input.skipped)
    record["skipped"].push_back({{"schedule", skipped.schedule}, {"reason", skipped.reason}});
  return record;
}

}  // namespace longhaul::harness
