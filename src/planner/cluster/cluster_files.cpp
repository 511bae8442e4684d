#include "planner/cluster/cluster_files.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <map>
#include <numeric>
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
/// By number of GPUs and where they lie (nothing: in the pool, or in any one site).
using RatesOfPlaces = std::map<std::pair<int, SiteGpus>, double>;
using Rates = std::map<Workload, RatesOfPlaces>;

std::string text_of(const Workload& workload) {
  return fmt::format("{} at batch {}", workload.first, workload.second);
}

/// "east:8" as GPUs of the site.
void read_site(const CsvLine& line, std::string_view word, const std::vector<ClusterSite>& sites,
               SiteGpus& place) {
  const std::string_view name = word.substr(0, word.find(':'));
  const auto site = std::ranges::find(sites, name, &ClusterSite::name);
  if (site == sites.end()) {
    std::vector<std::string> names;
    for (const ClusterSite& each : sites) names.push_back(each.name);
    line.refuse("sites: there is no \"{}\". {}", name, suggestion(name, names));
  }
  int& own = place[static_cast<std::size_t>(site - sites.begin())];
  const std::string_view digits = word.substr(std::min(name.size() + 1, word.size()));
  int count = 0;
  const auto [end, problem] = std::from_chars(digits.data(), digits.data() + digits.size(), count);
  if (problem != std::errc{} || end != digits.data() + digits.size() || count < 1 || own > 0)
    line.refuse("sites: \"{}\" is no site with its GPUs, once. Write it as {}:8.", word, name);
  own = count;
}

/// "east:8+west:4" as GPUs of each site.
SiteGpus read_place(const CsvLine& line, std::string_view text, int gpus,
                    const std::vector<ClusterSite>& sites) {
  if (text.empty()) return {};
  if (sites.empty())
    line.refuse(
        "sites \"{}\" (the cluster is one pool of GPUs). Name its sites, as in --gpus sites.toml.",
        text);
  SiteGpus place(sites.size());
  for (std::size_t begin = 0; begin <= text.size();) {
    const std::size_t end = std::min(text.find('+', begin), text.size());
    read_site(line, text.substr(begin, end - begin), sites, place);
    begin = end + 1;
  }
  if (const int sum = std::accumulate(place.begin(), place.end(), 0); sum != gpus)
    line.refuse("sites \"{}\" have {} GPUs together, and gpus is {}. Make them equal.", text, sum,
                gpus);
  return place;
}

Rates read_rates(std::string_view csv, const std::string& source, const ClusterGpus& cluster) {
  constexpr std::array<std::string_view, 5> kNames{"model", "global_batch", "gpus",
                                                   "iterations_per_second", "sites"};
  Rates rates;
  each_row(csv, source, kNames, 1, [&](CsvLine& line, const auto& places) {
    const auto batch = std::llround(number(line, *places[1], kNames[1], 1e12));
    const int gpus = static_cast<int>(number(line, *places[2], kNames[2], kMostGpus));
    if (gpus < 1) line.refuse("0 gpus (a job that runs holds some). Leave the line out.");
    const Workload workload{std::string{line.words[*places[0]]}, batch};
    SiteGpus place;
    if (places[4]) place = read_place(line, line.words[*places[4]], gpus, cluster.sites);
    const double rate = number(line, *places[3], kNames[3], kMostRate);
    if (!rates[workload].emplace(std::pair{gpus, std::move(place)}, rate).second)
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

/// Where a rate can be had: its own place, or any one site that is large enough.
std::vector<SiteGpus> places_of(const std::pair<int, SiteGpus>& given,
                                const std::vector<ClusterSite>& sites) {
  const auto& [gpus, place] = given;
  std::vector<SiteGpus> found;
  for (std::size_t site = 0; site < sites.size(); ++site) {
    if (!place.empty() && place[site] > sites[site].gpus) return {};
    if (place.empty() && gpus <= sites[site].gpus) found.emplace_back(sites.size())[site] = gpus;
  }
  if (!place.empty()) found.push_back(place);
  return found;
}

/// Rates, and with sites the places, of a job.
void set_rates(ClusterJob& job, const CsvLine& line, const Workload& workload, const Rates& rates,
               const ClusterGpus& cluster) {
  const auto found = rates.find(workload);
  if (found == rates.end()) refuse_workload(line, workload, rates);
  int least = 0;
  for (const auto& [given, rate] : found->second) {
    if (rate <= 0) continue;
    if (least == 0) least = given.first;
    if (cluster.sites.empty()) job.rates.push_back({given.first, rate});
    for (SiteGpus& place : places_of(given, cluster.sites)) {
      job.rates.push_back({given.first, rate});
      job.places.push_back(std::move(place));
    }
  }
  if (least == 0)
    line.refuse("{} runs on no number of GPUs (all its rates are 0). Leave the job out.",
                text_of(workload));
  if (least > cluster.count)
    line.refuse("{} needs {} GPUs at least (the cluster has {}). Give --gpus {} or more.",
                text_of(workload), least, cluster.count, least);
  if (job.rates.empty())
    line.refuse("{} fits none of the sites (its rates are of more GPUs than these have). Add one.",
                text_of(workload));
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

std::string place_text(const SiteGpus& place, const std::vector<ClusterSite>& sites) {
  std::vector<std::string> words;
  for (std::size_t site = 0; site < place.size(); ++site)
    if (place[site] > 0) words.push_back(fmt::format("{}:{}", sites[site].name, place[site]));
  return fmt::format("{}", fmt::join(words, "+"));
}

ClusterInput read_cluster_input(std::string_view jobs, const std::string& jobs_source,
                                std::string_view table, const std::string& table_source,
                                const ClusterGpus& gpus) {
  constexpr std::array<std::string_view, 6> kNames{"job",          "submit_s",   "model",
                                                   "global_batch", "iterations", "deadline_s"};
  const Rates rates = read_rates(table, table_source, gpus);
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
    set_rates(job, line, workload, rates, gpus);
    if (gpus.sites.empty() && !std::exchange(noted[workload], true))
      note_falls(workload, job.rates, gpus.count, input.notes);
    input.jobs.push_back(std::move(job));
  });
  if (input.jobs.empty())
    fail("{}: there are no jobs (only the names of columns). Give at least one.", jobs_source);
  return input;
}

}  // namespace longhaul::planner
