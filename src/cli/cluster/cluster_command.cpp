#include <chrono>
#include <ranges>

#include <nlohmann/json.hpp>

#include "base/clock.hpp"
#include "base/program/arguments.hpp"
#include "base/program/option_values.hpp"
#include "base/table.hpp"
#include "base/text_file.hpp"
#include "base/unit_text.hpp"
#include "cli/command/commands.hpp"
#include "cli/plan/layout_plan.hpp"
#include "planner/cluster/cluster_bound.hpp"
#include "planner/cluster/cluster_files.hpp"
#include "report/record.hpp"
#include "report/record_file.hpp"

namespace longhaul::cli {
namespace {

using nlohmann::ordered_json;
using planner::seconds;

constexpr Duration kLongest = std::chrono::hours{24 * 365};
constexpr std::size_t kMostRows = 200;

/// A time from 0 to a year; `least` for one that must be more than nothing.
Duration read_time(const char* option, const std::string& text, Duration usual, Duration least) {
  if (text.empty()) return usual;
  try {
    const Duration time = parse_duration(text);
    if (time < least || time > kLongest)
      fail("{} is not from {} to a year. Give another.", text, to_text(least));
    return time;
  } catch (const Error& error) {
    fail("{}: {}", option, error.what());
  }
}

planner::ClusterOptions cluster_options(const ClusterArguments& typed,
                                        const planner::ClusterGpus& gpus) {
  using namespace std::chrono_literals;
  planner::ClusterOptions options;
  options.gpus = gpus.count;
  for (const planner::ClusterSite& site : gpus.sites) options.sites.push_back(site.gpus);
  if (!typed.policy.empty())
    options.policy = choice<planner::ClusterPolicy>("--policy", typed.policy);
  options.counts = typed.counts.empty() ? planner::usual_counts(options.policy)
                                        : choice<planner::GpuCounts>("--counts", typed.counts);
  options.slot = read_time("--slot", typed.slot, options.slot, 1s);
  options.restart = read_time("--restart", typed.restart, options.restart, 0s);
  options.deadlines = !typed.no_deadlines;
  return options;
}

template <typename Value>
ordered_json or_null(const std::optional<Value>& value) {
  return value ? ordered_json(*value) : ordered_json{};
}

/// What no scheduler exceeds.
struct ClusterBounds {
  std::optional<int> deadlines;
  Duration makespan{};  ///< of the jobs that finished
};

ClusterBounds bounds_of(const planner::ClusterInput& input, const planner::ClusterOptions& options,
                        const planner::ClusterOutcome& outcome) {
  std::vector<bool> finished;
  for (const planner::JobOutcome& job : outcome.jobs) finished.push_back(job.met);
  ClusterBounds bounds;
  if (options.deadlines) bounds.deadlines = planner::most_deadlines(input.jobs, options.gpus);
  bounds.makespan = planner::least_makespan(input.jobs, finished, options.gpus);
  return bounds;
}

ordered_json job_json(const planner::ClusterJob& job, const planner::JobOutcome& outcome,
                      const std::vector<planner::ClusterSite>& sites) {
  ordered_json json;
  json["job"] = job.name;
  json["admitted"] = outcome.admitted;
  json["start_s"] = outcome.start ? ordered_json(seconds(*outcome.start)) : ordered_json{};
  json["end_s"] = outcome.end ? ordered_json(seconds(*outcome.end)) : ordered_json{};
  json["met"] = outcome.met;
  json["allocations"] = ordered_json::array();
  for (const planner::GpuGrant& grant : outcome.grants)
    json["allocations"].push_back({seconds(grant.from), grant.gpus});
  if (sites.empty()) return json;
  json["places"] = ordered_json::array();
  for (const planner::GpuGrant& grant : outcome.grants)
    json["places"].push_back(planner::place_text(grant.at, sites));
  return json;
}

std::string json_of(const planner::ClusterInput& input, const planner::ClusterOptions& options,
                    const planner::ClusterOutcome& outcome, const ClusterBounds& bounds,
                    const std::vector<planner::ClusterSite>& sites, const std::string& command_line,
                    Duration took) {
  ordered_json json = report::record_header(
      {.numbers = "simulated", .creator = "longhaul", .command_line = command_line});
  json["gpus"] = options.gpus;
  for (const planner::ClusterSite& site : sites) json["sites"][site.name] = site.gpus;
  json["policy"] = to_string(options.policy);
  json["counts"] = to_string(options.counts);
  json["slot_s"] = seconds(options.slot);
  json["restart_s"] = seconds(options.restart);
  json["jobs"] = ordered_json::array();
  for (std::size_t i = 0; i < input.jobs.size(); ++i)
    json["jobs"].push_back(job_json(input.jobs[i], outcome.jobs[i], sites));
  json["deadline_ratio"] = or_null(outcome.met_ratio);
  json["mean_jct_s"] = or_null(outcome.mean_seconds);
  json["makespan_s"] = seconds(outcome.makespan);
  json["gpu_utilisation"] = outcome.utilization;
  json["bound"] = {{"deadlines", or_null(bounds.deadlines)},
                   {"makespan_s", seconds(bounds.makespan)}};
  json["notes"] = input.notes;
  json["seconds"] = seconds(took);
  return report::json_text(json);
}

std::string grants_text(const planner::JobOutcome& outcome,
                        const std::vector<planner::ClusterSite>& sites) {
  std::string text;
  for (const planner::GpuGrant& grant : outcome.grants) {
    if (grant.gpus == 0 && &grant == &outcome.grants.back()) break;
    const bool in_sites = grant.gpus > 0 && !sites.empty();
    text +=
        fmt::format("{}{}", text.empty() ? "" : " ",
                    in_sites ? planner::place_text(grant.at, sites) : std::to_string(grant.gpus));
    constexpr std::size_t kWidest = 28;
    if (text.size() > kWidest) return text.substr(0, kWidest) + " ..";
  }
  return text;
}

std::string jobs_table(const planner::ClusterInput& input, const planner::ClusterOutcome& outcome,
                       const std::vector<planner::ClusterSite>& sites, TableWidth width) {
  Table table{{{"job", Align::left},
               {"submitted"},
               {"deadline"},
               {"start"},
               {"end"},
               {"", Align::left},
               {"GPUs one after the other", Align::left}}};
  const auto time = [](const std::optional<Duration>& value) {
    return value ? fmt::format("{:.0f} s", seconds(*value)) : std::string{"-"};
  };
  for (std::size_t i = 0; i < std::min(input.jobs.size(), kMostRows); ++i) {
    const planner::ClusterJob& job = input.jobs[i];
    const planner::JobOutcome& result = outcome.jobs[i];
    table.add_row({job.name, time(job.submit), time(job.deadline), time(result.start),
                   time(result.end),
                   result.met        ? "done"
                   : result.admitted ? "late"
                                     : "refused",
                   grants_text(result, sites)});
  }
  std::string text = table.text(width);
  if (input.jobs.size() > kMostRows)
    text += fmt::format("and {} more (--json has all)\n", input.jobs.size() - kMostRows);
  return text;
}

std::string text_of(const planner::ClusterInput& input, const planner::ClusterOptions& options,
                    const planner::ClusterOutcome& outcome, const ClusterBounds& bounds,
                    const std::vector<planner::ClusterSite>& sites, TableWidth width) {
  const std::string where = sites.empty() ? "" : fmt::format(" in {} sites", sites.size());
  std::string text = fmt::format("{} jobs on {} GPUs{}, {}; simulated\n\n", input.jobs.size(),
                                 options.gpus, where, to_string(options.policy)) +
                     jobs_table(input, outcome, sites, width) + '\n';
  if (outcome.met_ratio)
    text += fmt::format("deadlines met: {}%; no schedule meets more than {}\n",
                        report::percent_text(*outcome.met_ratio), bounds.deadlines.value_or(0));
  if (outcome.mean_seconds)
    text += fmt::format("mean completion {:.0f} s", *outcome.mean_seconds);
  else
    text += "no job ended in time";
  text += fmt::format(
      ", makespan {:.0f} s (these jobs cannot end before {:.0f} s), {}% of GPU time held\n",
      seconds(outcome.makespan), seconds(bounds.makespan),
      report::percent_text(outcome.utilization));
  const char* const used = options.counts == planner::GpuCounts::best ? "not taken" : "taken";
  for (const std::string& note : input.notes)
    text += fmt::format("{}: {} ({})\n", note, used, to_string(options.counts));
  return text;
}

}  // namespace

void add_cluster_options(Arguments& command, ClusterArguments& arguments) {
  command.option(
      "--gpus", arguments.gpus,
      "of the cluster, all equal; or a scenario (.toml) whose datacenters jobs may span");
  command.option("--throughput", arguments.throughput,
                 "table (.csv): model, global_batch, gpus, iterations_per_second");
  command.option("--policy", arguments.policy,
                 "elasticflow (default), edf, fifo, srtf or least-laxity");
  command.option("--counts", arguments.counts,
                 "best: no number of GPUs that is slower than fewer (default of elasticflow), or "
                 "largest");
  command.option("--slot", arguments.slot, "between changes of allocations (default 240s)");
  command.option("--restart", arguments.restart, "lost with each change of a job (default 0s)");
  command.flag("--no-deadlines", arguments.no_deadlines, "every job runs to its end")
      .takes_no_value();
}

Answer cluster_command(const Options& options) {
  const ClusterArguments& typed = options.cluster;
  if (typed.gpus.empty())
    fail("cluster: --gpus is missing (how many the cluster has). Give it, as in --gpus 128.");
  const ClusterPlace place = cluster_place(typed.gpus);
  const planner::ClusterOptions settings = cluster_options(typed, place.gpus);
  const TimePoint begin = now();
  const std::string& jobs = options.files.front();
  const std::string list = read_text_file(jobs);
  const RateTable table = rate_table(options, list, place);
  const planner::ClusterInput input =
      planner::read_cluster_input(list, jobs, table.text, table.source, place.gpus);
  const planner::ClusterOutcome outcome = planner::play_cluster(input.jobs, settings);
  const ClusterBounds bounds = bounds_of(input, settings, outcome);
  const Duration took = now() - begin;
  const std::vector<planner::ClusterSite>& sites = place.gpus.sites;
  if (options.json)
    return {json_of(input, settings, outcome, bounds, sites, options.command_line, took)};
  return {text_of(input, settings, outcome, bounds, sites, table_width(options))};
}

}  // namespace longhaul::cli
