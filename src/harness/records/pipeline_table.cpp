#include <algorithm>

#include <fmt/ranges.h>

#include "base/table.hpp"
#include "base/unit_text.hpp"
#include "harness/options/credit.hpp"
#include "harness/records/credibility.hpp"
#include "harness/records/pipeline_record.hpp"
#include "harness/records/sample_report.hpp"
#include "harness/session/check_report.hpp"
#include "plan/critical_messages.hpp"
#include "report/tables.hpp"

namespace longhaul::harness {
namespace {

std::string peak_text(const PipelineMeasurement& m) {
  const auto highest = std::ranges::max_element(m.measured.peak_activation);
  return fmt::format("{:.2f}{}", highest == m.measured.peak_activation.end() ? 0.0 : *highest,
                     m.predicted.over_budget.empty() ? "  " : " !");
}

/// Lines about single schedules, and about the run.
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
  if (lease.by_words > 0)
    text += fmt::format("of these over messages between hosts: {}, {} there and back, {} at most\n",
                        lease.by_words, to_text(mean_of(lease.words_total, lease.by_words)),
                        to_text(lease.words_longest));
  engine::CreditUse credit;
  for (const PipelineMeasurement& m : measurements) credit += m.credit;
  text += credit_text(credit);
  for (const PipelineMeasurement& m : measurements)
    text += message_notes(m.predicted.schedule, m.checks, m.wrong_messages);
  for (const PipelineMeasurement& m : measurements)
    for (const schedule::DeviceNeed& device : m.memory)
      if (!device.fits())
        text += fmt::format("! {} does not fit on device {}: {} of {}\n", m.predicted.schedule,
                            device.device, to_text(device.total()), to_text(*device.capacity));
  for (const PipelineMeasurement& m : measurements)
    if (m.overlap && m.overlap->predicted.overflow) {
      const planner::MemoryOverflow& over = *m.overlap->predicted.overflow;
      text += fmt::format("! {} does not fit on rank {}: {} of {}\n", m.predicted.schedule,
                          number(over.rank), to_text(over.peak), to_text(over.capacity));
    }
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
std::string network_note(const PipelineInput& input, const PipelineOptions& options) {
  std::string text;
  if (!input.sent.why.empty())
    text += fmt::format("! {}: {}\n", sent_text(input.sent.sizes), input.sent.why);
  if (options.emulate == "on") return text;
  return text +
         "emulation is off: measured over the network as it is; predicted is what the "
         "scenario's links would give\n";
}

/// The columns that some runs have.
struct OptionalColumns {
  bool data_parallel = false, tokens = false, utilization = false, loss = false;
};

OptionalColumns optional_columns(const std::vector<PipelineMeasurement>& measurements,
                                 const PipelineInput& input) {
  const Scenario& scenario = input.scenario;
  return {std::ranges::any_of(measurements,
                              [](const auto& m) { return m.measured.dp_overlap.has_value(); }),
          report::tokens_per_second(scenario, 1).has_value(),
          report::model_flops_utilization(scenario, 1).has_value(), input.compute.real};
}

std::vector<Table::Column> columns_of(const OptionalColumns& has, const report::TimeScale& scale) {
  std::vector<Table::Column> columns{{"schedule", Align::left},
                                     {fmt::format("predicted [{}]", scale.unit())},
                                     {"gap [%]", Align::right, 5},
                                     {"median"},
                                     {"95% CI of median"},
                                     {"min", Align::right, 1},
                                     {"p95", Align::right, 1},
                                     {"n"},
                                     {"diff [%]"},
                                     {"no credit", Align::right, 4},
                                     {"us/hop"},
                                     {"check", Align::left},
                                     {"bubble [%]", Align::right, 3},
                                     {"peak act.", Align::right, 2}};
  if (has.data_parallel) columns.push_back({"DP overlap [%]"});
  if (has.tokens) columns.push_back({"tokens/s"});
  if (has.utilization) columns.push_back({"MFU [%]"});
  if (has.loss) columns.push_back({"loss"});
  return columns;
}

/// A line of the table; times are the scenario's own, `rates` those of the median.
std::vector<std::string> cells_of(const PipelineMeasurement& m, const OptionalColumns& has,
                                  const OwnRates& rates, const report::TimeScale& scale,
                                  const std::string& verdict, const std::optional<Duration>& late) {
  const SampleSummary& s = m.summary;
  std::vector<std::string> cells{m.predicted.schedule,
                                 scale.text(static_cast<double>(m.predicted.makespan_ns)),
                                 m.predicted.gap() ? report::percent_text(*m.predicted.gap()) : "-",
                                 scale.text(s.median),
                                 report::interval_text(s, scale),
                                 scale.text(s.min),
                                 scale.text(s.p95),
                                 std::to_string(s.n),
                                 fmt::format("{:+.2f}", m.difference_percent()),
                                 fmt::format("{:+.2f}", m.difference_without_credit_percent()),
                                 plan::late_text(late),
                                 verdict,
                                 report::percent_text(report::mean(m.measured.bubble_ratio)),
                                 peak_text(m)};
  if (has.data_parallel)
    cells.push_back(m.measured.dp_overlap ? report::percent_text(*m.measured.dp_overlap) : "-");
  if (has.tokens) cells.push_back(fmt::format("{:.0f}", rates.tokens_per_second.value_or(0)));
  if (has.utilization) cells.push_back(report::percent_text(rates.mfu.value_or(0)));
  if (has.loss) cells.push_back(loss_text(m));
  return cells;
}

/// The run, and the unit of time of its tables.
std::string title_of(const PipelineInput& input, const PipelineOptions& options) {
  const int ranks = input.scenario.ranks();
  const bool in_fp32 = options.compute.compute == "real" && options.compute.device == "cpu";
  return fmt::format("{}: {} rank{}, {}{}, time_scale {:g}{}; measured, {}{}\n\n",
                     input.scenario.name, ranks, ranks == 1 ? "" : "s", sent_text(input.sent.sizes),
                     in_fp32 ? " (as fp32, twice the bytes)" : "", input.time_scale,
                     input.time_scale == 1 ? "" : " (times are the scenario's own)", options.comm,
                     options.emulate == "on" ? "" : ", network as it is");
}

}  // namespace

PipelineMeasurement at_own_scale(PipelineMeasurement m, double time_scale) {
  if (time_scale == 1) return m;
  const auto own = [&](Duration played) { return scaled(played, 1 / time_scale); };
  for (report::ScheduleRecord* record : {&m.predicted, &m.measured}) {
    record->makespan_ns = own(Duration{record->makespan_ns}).count();
    if (record->bound) record->bound->lower_bound = own(record->bound->lower_bound);
    for (plan::ResourceUse& use : record->resources) use.busy = own(use.busy);
    for (const trace::IdlePart& part : trace::idle_parts())
      record->idle.*part.member = own(Duration{record->idle.*part.member}).count();
    for (trace::TaskUse& use : record->tasks)
      for (std::int64_t* const ns : {&use.busy_ns, &use.work_ns}) *ns = own(Duration{*ns}).count();
  }
  if (m.overlap)
    for (collective::Exposure* each : {&m.overlap->predicted.exposure, &m.overlap->measured})
      for (collective::TimeByTraffic* times : {&each->communication, &each->exposed})
        for (Duration& time : *times) time = own(time);
  if (m.straggling) m.straggling = own(*m.straggling);
  if (m.weather)
    for (Duration& predicted : m.weather->predicted) predicted = own(predicted);
  for (double& ns : m.makespans_ns) ns /= time_scale;
  for (double& ns : m.without_credit_ns) ns /= time_scale;
  m.summary = summarize(m.makespans_ns);
  return m;
}

OwnRates own_rates(const PipelineMeasurement& played, const PipelineInput& input) {
  const auto median = static_cast<std::int64_t>(played.summary.median + 0.5);
  const auto own = static_cast<std::int64_t>(played.summary.median / input.time_scale + 0.5);
  // The GPUs of a scenario as played are slower by its factor: their utilization is the same.
  return {report::tokens_per_second(input.scenario, own),
          report::model_flops_utilization(input.scenario, median)};
}

std::string pipeline_table(const std::vector<PipelineMeasurement>& played,
                           const PipelineInput& input, const PipelineOptions& options,
                           const nlohmann::json& environment) {
  std::vector<PipelineMeasurement> measurements;
  std::vector<report::ScheduleRecord> measured, predicted;
  double largest = 0;
  for (const PipelineMeasurement& m : played) {
    measurements.push_back(at_own_scale(m, input.time_scale));
    measured.push_back(measurements.back().measured);
    predicted.push_back(measurements.back().predicted);
    largest = std::max(largest, measurements.back().summary.p95);
  }
  const report::TimeScale scale{largest};
  const RunConditions conditions = conditions_of(input, options, environment);
  const OptionalColumns has = optional_columns(measurements, input);
  Table table{columns_of(has, scale)};
  for (std::size_t i = 0; i < played.size(); ++i)
    table.add_row(cells_of(measurements[i], has, own_rates(played[i], input), scale,
                           verdict_text(played[i], conditions), played[i].late_per_message()));
  return title_of(input, options) + table.text(options.table_width()) +
         doubts_text(played, conditions) + overlap_table(measurements) +
         real_note(measurements, input, options) + network_note(input, options) +
         weather_table(measurements, input, options) + notes(measurements, input) +
         conditions_text(played, conditions) + report::bound_table_text(predicted) +
         "\nwhere the idle time went, measured, % of device time\n" +
         report::idle_table_text(measured) + busy_table(measurements);
}

}  // namespace longhaul::harness
