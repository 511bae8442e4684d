#include "support/environment.hpp"

#include <numeric>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "runtime/transport/mpi/session.hpp"

namespace longhaul::bench {
namespace {

using nlohmann::json;

json to_json(const ClockOffset& clock) {
  return {{"offset_ns", clock.offset.count()}, {"error_ns", clock.error.count()}};
}

/// One entry a host, with what its ranks report; load is that of its first rank.
json group_by_host(const std::vector<json>& ranks) {
  json hosts = json::array();
  for (const json& rank : ranks) {
    const auto same = [&](const json& host) { return host["name"] == rank["host"]["name"]; };
    auto host = std::find_if(hosts.begin(), hosts.end(), same);
    if (host == hosts.end()) {
      hosts.push_back(rank["host"]);
      hosts.back()["ranks"] = json::array();
      host = hosts.end() - 1;
    }
    (*host)["ranks"].push_back(rank["rank"]);
  }
  return hosts;
}

std::int64_t total(const std::vector<json>& ranks, const char* key) {
  return std::accumulate(
      ranks.begin(), ranks.end(), std::int64_t{0},
      [&](std::int64_t sum, const json& rank) { return sum + rank[key].get<std::int64_t>(); });
}

}  // namespace

json library_versions(const Machine& machine) {
  return {{"compiler", __VERSION__},
          {"mpi", mpi::library_version()},
          {"hwloc", machine.hwloc_version},
          {"fmt", fmt::format("{}.{}.{}", FMT_VERSION / 10000, FMT_VERSION / 100 % 100,
                              FMT_VERSION % 100)},
          {"nlohmann_json", fmt::format("{}.{}.{}", NLOHMANN_JSON_VERSION_MAJOR,
                                        NLOHMANN_JSON_VERSION_MINOR, NLOHMANN_JSON_VERSION_PATCH)}};
}

Environment::Environment(Ranks& ranks)
    : ranks_{ranks},
      machine_{describe_machine()},
      core_{bind_to_core(ranks.board())},
      load_before_{load_now()},
      clock_{measure_clock_offset(ranks.world(), ranks.board())} {}

json Environment::of_this_rank() const {
  const Load load = load_now();
  json host = {{"name", machine_.host},           {"kernel", machine_.kernel},
               {"processor", machine_.processor}, {"topology", machine_.topology},
               {"cores", machine_.cores},         {"memory_bytes", machine_.memory.count()},
               {"bound_to_cores", core_ >= 0},    {"clock", to_json(clock_)}};
  host["load_average"]["before"] = load_before_.average;
  if (finished_) {
    host["load_average"]["after"] = load.average;
    host["clock_after"] = to_json(clock_after_);
    const auto ticks = std::max<std::int64_t>(1, load.all_ticks - load_before_.all_ticks);
    host["steal_percent"] = 100.0 *
                            static_cast<double>(load.steal_ticks - load_before_.steal_ticks) /
                            static_cast<double>(ticks);
  }
  return {{"rank", index(ranks_.self())},
          {"host", host},
          {"involuntary", load.involuntary_switches - load_before_.involuntary_switches},
          {"voluntary", load.voluntary_switches - load_before_.voluntary_switches},
          {"processor_ns", (load.processor_time - load_before_.processor_time).count()}};
}

json Environment::gathered() {
  const std::string mine = of_this_rank().dump();
  std::vector<int> counts;
  const auto all = ranks_.world().gather(std::as_bytes(std::span{mine}), counts);
  if (!ranks_.is_first()) return nullptr;
  std::vector<json> ranks;
  const char* at = reinterpret_cast<const char*>(all.data());
  for (const int count : counts) {
    ranks.push_back(json::parse(at, at + count));
    at += count;
  }
  json result = {{"ranks", ranks_.count()}, {"hosts", group_by_host(ranks)}};
  result["load_average"] = result["hosts"][0]["load_average"];
  result["libraries"] = library_versions(machine_);
  if (finished_) {
    result["involuntary_context_switches"] = total(ranks, "involuntary");
    result["voluntary_context_switches"] = total(ranks, "voluntary");
    result["processor_ns"] = total(ranks, "processor_ns");
  }
  return result;
}

json Environment::before() { return gathered(); }

json Environment::after() {
  finished_ = true;
  clock_after_ = measure_clock_offset(ranks_.world(), ranks_.board());
  return gathered();
}

}  // namespace longhaul::bench
