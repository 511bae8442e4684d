#include "report/record.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <numeric>

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <nlohmann/json.hpp>

#include "base/index.hpp"
#include "base/table.hpp"
#include "base/unit_text.hpp"
#include "report/tables.hpp"
#include "scenario/model_costs.hpp"
#include "schedule/memory.hpp"

namespace longhaul::report {
namespace {

using nlohmann::ordered_json;

/// Per device: the largest over its replicas.
std::vector<std::int64_t> by_device(std::span<const std::int64_t> by_rank, int devices) {
  std::vector<std::int64_t> largest(to_size(devices), 0);
  for (std::size_t r = 0; r < by_rank.size(); ++r) {
    std::int64_t& of_device = largest[r % largest.size()];
    of_device = std::max(of_device, by_rank[r]);
  }
  return largest;
}

ordered_json optional_number(const std::optional<double>& value) {
  return value ? ordered_json(*value) : ordered_json(nullptr);
}

bool any_has(std::span<const ScheduleRecord> records,
             std::optional<double> ScheduleRecord::*member) {
  return std::any_of(records.begin(), records.end(),
                     [&](const ScheduleRecord& record) { return (record.*member).has_value(); });
}

std::ptrdiff_t count_with_bound(std::span<const ScheduleRecord> records) {
  return std::ranges::count_if(
      records, [](const ScheduleRecord& record) { return record.bound.has_value(); });
}

double largest_of(std::span<const ScheduleRecord> records, std::int64_t ScheduleRecord::*member) {
  std::int64_t largest = 0;
  for (const ScheduleRecord& record : records) largest = std::max(largest, record.*member);
  return static_cast<double>(largest);
}

std::string peak_text(const ScheduleRecord& record) {
  const auto highest =
      std::max_element(record.peak_activation.begin(), record.peak_activation.end());
  const double peak = highest == record.peak_activation.end() ? 0.0 : *highest;
  return fmt::format("{:.2f}{}", peak,
                     record.over_budget.empty() && record.too_large.empty() ? "  " : " !");
}

std::string budget_note(std::span<const ScheduleRecord> records, const Scenario& scenario) {
  std::string note;
  for (const ScheduleRecord& record : records) {
    if (record.over_budget.empty()) continue;
    note += fmt::format("  {}: device{} {}\n", record.schedule,
                        record.over_budget.size() == 1 ? "" : "s", ranges_text(record.over_budget));
  }
  if (note.empty()) return note;
  const int window = std::min(scenario.parallel.stages, scenario.parallel.microbatches);
  return fmt::format("! over the budget of {:g} activations of the largest stage:\n",
                     scenario.memory.budget * window) +
         note;
}

std::string capacity_note(std::span<const ScheduleRecord> records) {
  std::string note;
  for (const ScheduleRecord& record : records) {
    if (record.too_large.empty()) continue;
    std::vector<int> devices;
    for (const schedule::DeviceNeed& need : record.too_large)
      devices.push_back(number(need.device));
    const schedule::DeviceNeed& worst = *std::ranges::max_element(
        record.too_large, {},
        [](const schedule::DeviceNeed& need) { return need.total() - *need.capacity; });
    note += fmt::format("! {} does not fit on device{} {}: {} of {} on device {}\n",
                        record.schedule, devices.size() == 1 ? "" : "s", ranges_text(devices),
                        to_text(worst.total()), to_text(*worst.capacity), number(worst.device));
  }
  return note;
}

std::string grain_note(std::span<const ScheduleRecord> records) {
  std::vector<std::string> whole, estimates;
  for (const ScheduleRecord& record : records) {
    if (record.grain == planner::Grain::whole) whole.push_back(record.schedule);
    if (record.grain == planner::Grain::estimate) estimates.push_back(record.schedule);
  }
  std::string note;
  if (!whole.empty())
    note = fmt::format(
        "collectives of {} are one op each, as long as they take alone (by messages there would "
        "be more than {} ops)\n",
        fmt::join(whole, ", "), planner::kMostOpsInSteps);
  if (!estimates.empty())
    note += fmt::format("collectives of {} are estimates, which hold no link\n",
                        fmt::join(estimates, ", "));
  return note;
}

/// Microbatches of all replicas together, in one iteration.
double microbatches(const Scenario& scenario) {
  double count = 0;
  for (const ReplicaId replica : scenario.replica_ids()) count += scenario.microbatches_of(replica);
  return count;
}

}  // namespace

ScheduleRecord make_record(const trace::IterationReport& report, const Schedule& schedule,
                           const Scenario& scenario, Bounds bounds) {
  ScheduleRecord record;
  record.schedule = report.schedule;
  record.makespan_ns = report.makespan_ns;
  record.iteration_ns = report.makespan_ns;
  record.device_span_ns = report.device_span_ns;
  record.per_microbatch_ns =
      static_cast<double>(report.makespan_ns) / scenario.parallel.microbatches;
  record.bubble_ratio = report.bubble_ratio;
  record.wan_crossings_on_critical_path = report.wan_crossings_on_critical_path;
  if (bounds == Bounds::computed) record.bound = bound_of(schedule, scenario);
  record.idle = report.idle;
  record.tasks = report.tasks;
  record.dp_overlap = report.dp_overlap;
  record.traffic = report.traffic;
  const auto peaks = by_device(report.peak_activation_bytes, scenario.parallel.stages);
  const auto& activations = scenario.costs.activation;
  const std::int64_t unit = std::max_element(activations.begin(), activations.end())->count();
  for (const std::int64_t peak : peaks) {
    record.peak_activation.push_back(
        unit > 0 ? static_cast<double>(peak) / static_cast<double>(unit) : 0.0);
  }
  record.over_budget = schedule::over_budget(schedule, scenario);
  for (const schedule::DeviceNeed& need : schedule::device_memory(schedule, scenario))
    if (!need.fits()) record.too_large.push_back(need);
  record.tokens_per_second = tokens_per_second(scenario, report.makespan_ns);
  record.mfu = model_flops_utilization(scenario, report.makespan_ns);
  return record;
}

ordered_json to_json(const trace::IdleTime& idle) {
  ordered_json json = ordered_json::object();
  for (const trace::IdlePart& part : trace::idle_parts())
    if (!part.of_tasks || idle.*part.member != 0) json[part.name] = idle.*part.member;
  return json;
}

ordered_json to_json(const std::array<trace::TaskUse, kCountOf<TaskKind>>& tasks) {
  ordered_json json = ordered_json::object();
  for (const TaskKind kind : every<TaskKind>()) {
    const trace::TaskUse& use = tasks[index(kind)];
    if (use.tasks > 0)
      json[to_string(kind)] = {
          {"tasks", use.tasks}, {"busy_ns", use.busy_ns}, {"work_ns", use.work_ns}};
  }
  return json;
}

ordered_json to_json(const ScheduleRecord& record) {
  ordered_json json;
  json["schedule"] = record.schedule;
  json["grain"] = to_string(record.grain);
  json["makespan_ns"] = record.makespan_ns;
  json["iteration_ns"] = record.iteration_ns;
  json["device_span_ns"] = record.device_span_ns;
  json["per_microbatch_ns"] = record.per_microbatch_ns;
  const auto of_bound = [&](auto value) {
    return record.bound ? ordered_json(value(*record.bound)) : ordered_json(nullptr);
  };
  json["lower_bound_ns"] = of_bound([](const auto& bound) { return bound.lower_bound.count(); });
  json["gap"] = optional_number(record.gap());
  json["bound_holds_for"] = of_bound([](const auto& bound) { return bound.holds_for; });
  json["bound_reason"] = of_bound([](const auto& bound) { return bound.reason; });
  json["bubble_ratio"] = record.bubble_ratio;
  json["peak_activation"] = record.peak_activation;
  json["over_budget"] = record.over_budget;
  json["fits"] = record.too_large.empty();
  json["wan_crossings_on_critical_path"] = record.wan_crossings_on_critical_path;
  json["idle"] = to_json(record.idle);
  if (const ordered_json tasks = to_json(record.tasks); !tasks.empty()) json["tasks"] = tasks;
  if (record.dp_overlap) json["dp_overlap"] = *record.dp_overlap;
  json["tokens_per_second"] = optional_number(record.tokens_per_second);
  json["mfu"] = optional_number(record.mfu);
  json["resources"] = resources_json(record);
  json["traffic"] = traffic_json(record.traffic);
  if (record.operators) json["operators"] = to_json(*record.operators);
  return json;
}

std::string table_text(std::span<const ScheduleRecord> records, const Scenario& scenario,
                       TableWidth width) {
  const TimeScale whole{largest_of(records, &ScheduleRecord::makespan_ns)};
  double largest_share = 0;
  for (const ScheduleRecord& record : records)
    largest_share = std::max(largest_share, record.per_microbatch_ns);
  const TimeScale share{largest_share};
  std::vector<Table::Column> columns{{"schedule", Align::left},
                                     {fmt::format("makespan [{}]", whole.unit())}};
  const bool bounds = count_with_bound(records) > 0;
  if (bounds) columns.push_back({"gap [%]"});
  columns.insert(columns.end(),
                 {{fmt::format("per microbatch [{}]", share.unit()), Align::right, 1},
                  {fmt::format("device span [{}]", whole.unit()), Align::right, 2},
                  {"bubble [%]"},
                  {"peak act."},
                  {"WAN crossings"}});
  const bool data_parallel = any_has(records, &ScheduleRecord::dp_overlap);
  const bool throughput = any_has(records, &ScheduleRecord::tokens_per_second);
  const bool utilization = any_has(records, &ScheduleRecord::mfu);
  if (data_parallel) columns.push_back({"DP overlap [%]"});
  if (throughput) columns.push_back({"tokens/s", Align::right, 4});
  if (utilization) columns.push_back({"MFU [%]", Align::right, 3});
  Table table{columns};
  for (const ScheduleRecord& record : records) {
    std::vector<std::string> cells{record.schedule,
                                   whole.text(static_cast<double>(record.makespan_ns))};
    if (bounds) cells.push_back(record.bound ? percent_text(*record.gap()) : "-");
    cells.insert(cells.end(), {share.text(record.per_microbatch_ns),
                               whole.text(static_cast<double>(record.device_span_ns)),
                               percent_text(mean(record.bubble_ratio)), peak_text(record),
                               std::to_string(record.wan_crossings_on_critical_path)});
    if (data_parallel) cells.push_back(record.dp_overlap ? percent_text(*record.dp_overlap) : "-");
    if (throughput) cells.push_back(fmt::format("{:.0f}", record.tokens_per_second.value_or(0)));
    if (utilization) cells.push_back(percent_text(record.mfu.value_or(0)));
    table.add_row(std::move(cells));
  }
  std::string text = table.text(width) + budget_note(records, scenario) + capacity_note(records) +
                     grain_note(records);
  if (count_with_bound(records) < std::ssize(records))
    text += "--bounds shows how far each is above a time that none of its class undercuts\n";
  return text + bound_table_text(records, width);
}

std::string idle_table_text(std::span<const ScheduleRecord> records, TableWidth width) {
  std::vector<Table::Column> columns{{"schedule", Align::left}, {"idle [%]"}};
  std::vector<trace::IdlePart> shown;
  for (const trace::IdlePart& part : trace::idle_parts()) {
    const bool anywhere = std::any_of(records.begin(), records.end(), [&](const auto& record) {
      return record.idle.*part.member != 0;
    });
    if (!anywhere) continue;
    shown.push_back(part);
    columns.push_back({part.name, Align::right, 1});
  }
  Table table{columns};
  for (const ScheduleRecord& record : records) {
    const double device_time =
        static_cast<double>(record.makespan_ns) * static_cast<double>(record.bubble_ratio.size());
    const auto share = [&](std::int64_t part) {
      return percent_text(device_time > 0 ? static_cast<double>(part) / device_time : 0.0);
    };
    std::vector<std::string> cells{record.schedule, share(record.idle.total())};
    for (const trace::IdlePart& part : shown) cells.push_back(share(record.idle.*part.member));
    table.add_row(std::move(cells));
  }
  return table.text(width);
}

TimeScale::TimeScale(double largest_ns) : unit_{"ns"}, factor_{1}, decimals_{0} {
  constexpr std::array<std::pair<const char*, double>, 3> kLarger{
      {{"us", 1e3}, {"ms", 1e6}, {"s", 1e9}}};
  for (const auto& [name, factor] : kLarger) {
    if (largest_ns < factor) break;
    unit_ = name;
    factor_ = factor;
  }
  const double shown = largest_ns / factor_;
  while (decimals_ < 3 && shown > 0 && shown * std::pow(10.0, decimals_) < 1000.0) ++decimals_;
}

std::string TimeScale::text(double time_ns) const {
  return fmt::format("{:.{}f}", time_ns / factor_, decimals_);
}

std::string percent_text(double ratio) { return fmt::format("{:.1f}", 100.0 * ratio); }

std::string ranges_text(std::span<const int> numbers) {
  std::string text;
  for (std::size_t i = 0; i < numbers.size();) {
    std::size_t last = i;
    while (last + 1 < numbers.size() && numbers[last + 1] == numbers[last] + 1) ++last;
    if (!text.empty()) text += ", ";
    text +=
        last == i ? fmt::format("{}", numbers[i]) : fmt::format("{}-{}", numbers[i], numbers[last]);
    i = last + 1;
  }
  return text;
}

double mean(std::span<const double> values) {
  if (values.empty()) return 0.0;
  return std::accumulate(values.begin(), values.end(), 0.0) / static_cast<double>(values.size());
}

std::optional<double> tokens_per_second(const Scenario& scenario, std::int64_t makespan_ns) {
  if (!scenario.model || makespan_ns <= 0) return std::nullopt;
  const Model& model = *scenario.model;
  const double tokens = static_cast<double>(model.microbatch_size) * model.sequence_length;
  return microbatches(scenario) * tokens / (static_cast<double>(makespan_ns) * 1e-9);
}

std::optional<double> model_flops_utilization(const Scenario& scenario, std::int64_t makespan_ns) {
  if (!scenario.model || scenario.model->peak_flops <= 0 || makespan_ns <= 0) return std::nullopt;
  const Model& model = *scenario.model;
  const double gpus = static_cast<double>(scenario.training_ranks()) * model.tensor_parallel;
  return microbatches(scenario) * scenario::training_flops(model) /
         (static_cast<double>(makespan_ns) * 1e-9 * gpus * model.peak_flops);
}

}  // namespace longhaul::report
