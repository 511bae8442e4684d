#include "harness/ranks/environment.hpp"

#include <algorithm>
#include <numeric>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "comm/group/session.hpp"
#include "harness/environment/facts.hpp"
#include "harness/ranks/gather_texts.hpp"
#include "host/rank_accelerator.hpp"

namespace longhaul::harness {
namespace {

using Json = nlohmann::json;

Json to_json(const comm::ClockOffset& clock) {
  return {{"offset_ns", clock.offset.count()}, {"error_ns", clock.error.count()}};
}

/// One entry a host, as its first rank reports it, with the numbers of its ranks. Told apart by
/// that rank: names of hosts may be equal.
Json group_by_host(const std::vector<Json>& ranks) {
  Json hosts = Json::array();
  std::vector<int> firsts;
  for (const Json& rank : ranks) {
    const auto at = std::ranges::find(firsts, rank["first_of_host"].get<int>());
    if (at == firsts.end()) {
      firsts.push_back(rank["rank"].get<int>());
      hosts.push_back(rank["host"]);
      hosts.back()["ranks"] = Json::array({rank["rank"]});
    } else {
      hosts[static_cast<std::size_t>(at - firsts.begin())]["ranks"].push_back(rank["rank"]);
    }
  }
  return hosts;
}

/// Errors of the clocks of several hosts; null where there is one host.
Json clocks_of(const Json& hosts) {
  if (hosts.size() < 2) return nullptr;
  std::int64_t error = 0;
  double drift = 0;
  for (const Json& host : hosts) {
    error = std::max(error, host["clock"]["error_ns"].get<std::int64_t>());
    if (!host.contains("clock_after")) continue;
    error = std::max(error, host["clock_after"]["error_ns"].get<std::int64_t>());
    drift = std::max(drift, std::abs(host["clock_drift_ppm"].get<double>()));
  }
  Json clocks = {{"aligned_to", "rank 0"}, {"largest_error_ns", error}};
  if (hosts.front().contains("clock_after")) clocks["largest_drift_ppm"] = drift;
  return clocks;
}

std::int64_t total(const std::vector<Json>& ranks, const char* key) {
  return std::accumulate(
      ranks.begin(), ranks.end(), std::int64_t{0},
      [&](std::int64_t sum, const Json& rank) { return sum + rank[key].get<std::int64_t>(); });
}

}  // namespace

Json library_versions(const host::Machine& machine) {
  return {{"compiler", __VERSION__},
          {"mpi", comm::library_version()},
          {"hwloc", machine.hwloc_version},
          {"fmt", fmt::format("{}.{}.{}", FMT_VERSION / 10000, FMT_VERSION / 100 % 100,
                              FMT_VERSION % 100)},
          {"nlohmann_json", fmt::format("{}.{}.{}", NLOHMANN_JSON_VERSION_MAJOR,
                                        NLOHMANN_JSON_VERSION_MINOR, NLOHMANN_JSON_VERSION_PATCH)}};
}

Environment::Environment(engine::Ranks& ranks, std::string command_line)
    : ranks_{ranks},
      command_line_{std::move(command_line)},
      machine_{host::describe_machine()},
      binding_{host::bind_self(ranks.host_ranks())},
      load_before_{host::load_now()},
      load_during_{load_before_.average},
      clock_{comm::measure_clock_offset(ranks.world(), ranks.host_ranks()), {}} {}

void Environment::watch_load() {
  const TimePoint at = now();
  if (at - load_seen_ < std::chrono::seconds{1}) return;
  load_seen_ = at;
  load_during_ = host::largest_of(load_during_, host::load_now().average);
}

Json Environment::of_this_host() const {
  const host::Load load = host::load_now();
  Json host = host_facts();
  host.update({{"name", machine_.host},
               {"kernel", machine_.kernel},
               {"processor", machine_.processor},
               {"topology", machine_.topology},
               {"cores", machine_.cores},
               {"memory_bytes", machine_.memory.count()},
               {"bound_to_cores", binding_.has_cores},
               {"ranks_are", host::to_string(host::gpu_sharing())},
               {"clock", to_json(clock_.start)}});
  host["load_average"]["before"] = load_before_.average;
  if (!finished_) return host;
  host["load_average"]["after"] = load.average;
  host["load_average"]["during"] = host::largest_of(load_during_, load.average);
  host["clock_after"] = to_json(clock_.end);
  host["clock_drift_ppm"] = 1e6 * clock_.drift();
  const auto ticks = std::max<std::int64_t>(1, load.all_ticks - load_before_.all_ticks);
  host["steal_percent"] = 100.0 * static_cast<double>(load.steal_ticks - load_before_.steal_ticks) /
                          static_cast<double>(ticks);
  return host;
}

Json Environment::of_this_rank() const {
  const host::Load load = host::load_now();
  const Rank first = ranks_.host_ranks().host_of(ranks_.self());
  return {{"rank", index(ranks_.self())},
          {"first_of_host", index(first)},
          {"host", first == ranks_.self() ? of_this_host() : Json(nullptr)},
          {"clock_since_ns", (clock_.start.at + clock_.start.offset).count()},
          {"clock_until_ns", (clock_.end.at + clock_.start.offset).count()},
          {"clock_drift", clock_.drift()},
          {"involuntary", load.involuntary_switches - load_before_.involuntary_switches},
          {"voluntary", load.voluntary_switches - load_before_.voluntary_switches},
          {"processor_ns", (load.processor_time - load_before_.processor_time).count()}};
}

Json Environment::gathered() {
  const auto texts = gather_texts(ranks_.world(), of_this_rank().dump());
  if (!ranks_.is_first()) return nullptr;
  std::vector<Json> ranks;
  for (const std::string& text : texts) ranks.push_back(Json::parse(text));
  Json result = {{"ranks", ranks_.count()}, {"hosts", group_by_host(ranks)}};
  result["ranks_per_process"] = ranks_.world().is_of_threads() ? ranks_.count() : 1;
  result["load_average"] = result["hosts"][0]["load_average"];
  result["libraries"] = library_versions(machine_);
  const Variables variables = environment_variables();
  result["mpi"] = {{"library", comm::library_version()}, {"parameters", mpi_parameters(variables)}};
  result["slurm"] = job_facts(variables);
  result["program"] = program_facts(command_line_);
  result["clocks"] = clocks_of(result["hosts"]);
  if (finished_) {
    result["involuntary_context_switches"] = total(ranks, "involuntary");
    result["voluntary_context_switches"] = total(ranks, "voluntary");
    result["processor_ns"] = total(ranks, "processor_ns");
    keep_clocks(ranks);
  }
  return result;
}

void Environment::keep_clocks(const std::vector<Json>& ranks) {
  rank_clocks_.clear();
  if (ranks_.host_ranks().all_local()) return;
  for (const Json& rank : ranks)
    rank_clocks_.push_back({rank["clock_since_ns"].get<std::int64_t>(),
                            rank["clock_until_ns"].get<std::int64_t>(),
                            rank["clock_drift"].get<double>()});
}

Json Environment::before() { return gathered(); }

Json Environment::after() {
  finished_ = true;
  clock_.end = comm::measure_clock_offset(ranks_.world(), ranks_.host_ranks());
  return gathered();
}

}  // namespace longhaul::harness
