#include "planner/cluster/cluster_files.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <map>
#include <optional>
#include <span>
#include <utility>

#include "base/suggest.hpp"
#include "scenario/text/csv_lines.hpp"

namespace longhaul::planner {
namespace {

using scenario::CsvLine;

constexpr double kLongest = 3.2e8;  // s: ten years
constexpr double kMostIterations = 1e15;
constexpr double kMostRate = 1e9;
constexpr double kMostGpus = 1 << 24;

/// A table with a line of names: calls `take` with each line after it and the places of `names` in
/// it. The last `optional` names may be missing; their place is then none.
template <typename Take>
void each_row(std::string_view csv, const std::string& source,
              std::span<const std::string_view> names, std::size_t optional, Take take) {
  std::vector<std::optional<std::size_t>> places;
  std::size_t columns = 0;
  scenario::each_csv_line(csv, source, [&](CsvLine& line) {
    if (!places.empty()) {
      if (line.words.size() != columns)
        line.refuse("{} values (the first line names {} columns). Give one for each.",
                    line.words.size(), columns);
      take(line, places);
      return;
    }
    columns = line.words.size();
    for (std::size_t i = 0; i < names.size(); ++i) {
      const auto found = std::ranges::find(line.words, names[i]);
      places.emplace_back();
      if (found != line.words.end())
        places.back() = static_cast<std::size_t>(found - line.words.begin());
      else if (i + optional < names.size())
        line.refuse("there is no column \"{}\" (this line names the columns). It takes {}.",
                    names[i], fmt::join(names, ", "));
    }
  });
  if (places.empty())
    fail("{}: it is empty (the first line names the columns). It takes {}.", source,
         fmt::join(names, ", "));
}

double number(const CsvLine& line, std::size_t place, std::string_view name, double most) {
  const std::string_view text = line.words[place];
  double value = 0;
  const auto [end, problem] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (problem != std::errc{} || end != text.data() + text.size() || !std::isfinite(value) ||
      value < 0 || value > most)
    line.refuse("{} \"{}\" is no number from 0 to {:g}. Give one.", name, text, most);
  return value;
}

/// Submission and deadline: rounded to the nanosecond.
Duration time(const CsvLine& line, std::size_t place, std::string_view name) {
  return Duration{std::llround(number(line, place, name, kLongest) * 1e9)};
}

/// Model and global batch.
using Workload = std::pair<std::string, std::int64_t>;
using Rates = std::map<Workload, std::map<int, double>>;

std::string text_of(const Workload& workload) {
  return fmt::format("{} at batch {}", workload.first, workload.second);
}

Rates read_rates(std::string_view csv, const std::string& source) {
  constexpr std::array<std::string_view, 4> kNames{"model", "global_batch", "gpus",
                                                   "iterations_per_second"};
  Rates rates;
  each_row(csv, source, kNames, 0, [&](CsvLine& line, const auto& places) {
    const auto batch = std::llround(number(line, *places[1], kNames[1], 1e12));
    const int gpus = static_cast<int>(number(line, *places[2], kNames[2], kMostGpus));
    if (gpus < 1) line.refuse("0 gpus (a job that runs holds some). Leave the line out.");
    const Workload workload{std::string{line.words[*places[0]]}, batch};
    if (!rates[workload].emplace(gpus, number(line, *places[3], kNames[3], kMostRate)).second)
      line.refuse("{} on {} GPUs stands twice. Leave one out.", text_of(workload), gpus);
  });
  return rates;
}

[[noreturn]] void refuse_workload(const CsvLine& line, const Workload& workload,
                                  const Rates& rates) {
  std::vector<std::string> batches, models;
  for (const auto& [each, counts] : rates) {
    if (each.first == workload.first) batches.push_back(std::to_string(each.second));
    if (models.empty() || models.back() != each.first) models.push_back(each.first);
  }
  if (!batches.empty())
    line.refuse("there is no {} in the table of rates (it has batches {}). Add its lines.",
                text_of(workload), fmt::join(batches, ", "));
  line.refuse("there is no model \"{}\" in the table of rates. {}", workload.first,
              suggestion(workload.first, models));
}

std::vector<GpuRate> rates_of(const CsvLine& line, const Workload& workload, const Rates& rates,
                              int gpus) {
  const auto found = rates.find(workload);
  if (found == rates.end()) refuse_workload(line, workload, rates);
  std::vector<GpuRate> list;
  for (const auto& [count, rate] : found->second)
    if (rate > 0) list.push_back({count, rate});
  if (list.empty())
    line.refuse("{} runs on no number of GPUs (all its rates are 0). Leave the job out.",
                text_of(workload));
  if (list.front().gpus > gpus)
    line.refuse("{} needs {} GPUs at least (the cluster has {}). Give --gpus {} or more.",
                text_of(workload), list.front().gpus, gpus, list.front().gpus);
  return list;
}

/// Counts that ElasticFlow does not take.
void note_falls(const Workload& workload, const std::vector<GpuRate>& rates, int gpus,
                std::vector<std::string>& notes) {
  const std::vector<GpuRate> faster = rising(rates);
  std::vector<int> slower;
  for (const GpuRate& each : rates) {
    const auto same = std::ranges::find(faster, each.gpus, &GpuRate::gpus);
    if (same == faster.end() && each.gpus <= gpus) slower.push_back(each.gpus);
  }
  if (!slower.empty())
    notes.push_back(fmt::format("{}: {} GPUs are no faster than fewer ones", text_of(workload),
                                fmt::join(slower, ", ")));
}

}  // namespace

ClusterInput read_cluster_input(std::string_view jobs, const std::string& jobs_source,
                                std::string_view table, const std::string& table_source, int gpus) {
  constexpr std::array<std::string_view, 6> kNames{"job",          "submit_s",   "model",
                                                   "global_batch", "iterations", "deadline_s"};
  const Rates rates = read_rates(table, table_source);
  ClusterInput input;
  std::map<std::string, bool, std::less<>> names;
  std::map<Workload, bool> noted;
  each_row(jobs, jobs_source, kNames, 1, [&](CsvLine& line, const auto& places) {
    ClusterJob job;
    job.name = line.words[*places[0]];
    if (!names.emplace(job.name, true).second)
      line.refuse("job \"{}\" stands twice. Give each a name of its own.", job.name);
    job.submit = time(line, *places[1], kNames[1]);
    const Workload workload{std::string{line.words[*places[2]]},
                            std::llround(number(line, *places[3], kNames[3], 1e12))};
    job.iterations = number(line, *places[4], kNames[4], kMostIterations);
    if (job.iterations <= 0) line.refuse("0 iterations (a job does some). Leave the job out.");
    if (places[5] && !line.words[*places[5]].empty()) {
      job.deadline = time(line, *places[5], kNames[5]);
      if (*job.deadline <= job.submit)
        line.refuse(
            "the deadline {} s is not after the submission at {} s (both count from the "
            "same moment). Give a later one.",
            line.words[*places[5]], line.words[*places[1]]);
    }
    job.rates = rates_of(line, workload, rates, gpus);
    if (std::exchange(noted[workload], true) == false)
      note_falls(workload, job.rates, gpus, input.notes);
    input.jobs.push_back(std::move(job));
  });
  if (input.jobs.empty())
    fail("{}: there are no jobs (only the names of columns). Give at least one.", jobs_source);
  return input;
}

}  // namespace longhaul::planner
