#include "harness/profile/collective_profile.hpp"

#include <algorithm>
#include <set>

#include "base/index.hpp"
#include "base/unit_text.hpp"
#include "harness/collectives/collective_list.hpp"

namespace longhaul::harness {
namespace {

constexpr CollectiveKind kProfiledCollectives[] = {
    CollectiveKind::all_reduce, CollectiveKind::all_gather, CollectiveKind::reduce_scatter};
constexpr std::int64_t kAround = 4;
constexpr std::int64_t kLeast = 1024;  ///< bytes: a number for each shard of many ranks

/// 2, 4, ... below `ranks`, and `ranks`.
std::vector<int> group_sizes(int ranks) {
  std::vector<int> sizes;
  for (int size = 2; size < ranks; size *= 2) sizes.push_back(size);
  if (ranks > 1) sizes.push_back(ranks);
  return sizes;
}

std::size_t hosts_of(const std::vector<Rank>& members, const engine::Ranks& ranks) {
  std::set<Rank> hosts;
  for (const Rank member : members) hosts.insert(ranks.host_ranks().host_of(member));
  return hosts.size();
}

}  // namespace

std::vector<plan::Collective> profiled_collectives(int ranks,
                                                   const std::vector<std::string>& sizes) {
  std::vector<plan::Collective> all;
  for (const CollectiveKind kind : kProfiledCollectives)
    for (const int members : group_sizes(ranks))
      for (const std::string& size : sizes) {
        plan::Collective one{.kind = kind, .members = {}, .size = parse_bytes(size)};
        for (const Rank rank : ids<Rank>(members)) one.members.push_back(rank);
        require_runnable(one);
        all.push_back(std::move(one));
      }
  return all;
}

std::vector<std::string> sizes_around(Bytes boundary) {
  std::vector<std::string> sizes;
  const std::int64_t first = std::max(boundary.count() / kAround, kLeast);
  for (std::int64_t size = first; size <= std::max(first, kAround * boundary.count()); size *= 2)
    sizes.push_back(std::to_string(size) + "B");
  return sizes;
}

std::vector<CollectiveMeasurement> measure_profiled_collectives(
    engine::Ranks& ranks, const std::vector<plan::Collective>& collectives, int samples,
    const std::function<void(const CollectiveMeasurement&)>& after_each) {
  const Scenario scenario = uniform_scenario(ranks.count(), 1);
  CollectiveSettings settings;
  settings.repetitions = {.iterations = samples, .warmup = 2};
  settings.engine.emulation = engine::Emulation::off;
  settings.ties.draws = 0;
  std::vector<CollectiveMeasurement> all;
  for (const plan::Collective& each : collectives) {
    all.push_back(measure_collective(each, scenario, ranks, settings));
    after_each(all.back());
  }
  return all;
}

std::string collectives_csv(const std::vector<CollectiveMeasurement>& measured,
                            const engine::Ranks& ranks) {
  std::string text = "operation,ranks,nodes,size_bytes,n,median_ns,low_ns,high_ns\n";
  for (const CollectiveMeasurement& each : measured) {
    const plan::Collective& collective = each.predicted.collective;
    const auto& interval = each.summary.median_interval;
    const auto end = [&](double Interval::*which) {
      return interval ? fmt::format("{:.0f}", *interval.*which) : std::string{};
    };
    text += fmt::format("{},{},{},{},{},{:.0f},{},{}\n", to_string(collective.kind),
                        collective.members.size(), hosts_of(collective.members, ranks),
                        collective.size.count(), each.summary.n, each.summary.median,
                        end(&Interval::low), end(&Interval::high));
  }
  return text;
}

}  // namespace longhaul::harness
