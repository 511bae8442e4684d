#include <algorithm>
#include <numeric>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "harness/placement/placement.hpp"

namespace longhaul::harness {
namespace {

/// Nodes of `tasks` slots, all used: one datacenter each, no group parted.
bool fits(const Scenario& scenario, const std::vector<RankGroup>& groups, int tasks) {
  std::vector<int> count(scenario.datacenters.size());
  std::vector<std::pair<DatacenterId, int>> node_of;  // index: rank
  for (int rank = 0; rank < scenario.ranks(); ++rank) {
    const DatacenterId here = scenario.datacenter_of(Rank{rank});
    node_of.emplace_back(here, count[index(here)]++ / tasks);
  }
  return std::ranges::all_of(count, [&](int ranks) { return ranks % tasks == 0; }) &&
         std::ranges::all_of(groups, [&](const RankGroup& group) {
           return std::ranges::all_of(group, [&](Rank rank) {
             return node_of[index(rank)] == node_of[index(group.front())];
           });
         });
}

bool spans_datacenters(const Scenario& scenario, const RankGroup& group) {
  return std::ranges::any_of(group, [&](Rank rank) {
    return scenario.datacenter_of(rank) != scenario.datacenter_of(group.front());
  });
}

/// A node for each datacenter, as lines of a hostfile.
std::string node_for_each(const Scenario& scenario) {
  std::vector<int> count(scenario.datacenters.size());
  for (int rank = 0; rank < scenario.ranks(); ++rank)
    ++count[index(scenario.datacenter_of(Rank{rank}))];
  std::vector<std::string> lines;
  for (std::size_t i = 0; i < count.size(); ++i)
    if (count[i] > 0)
      lines.push_back(fmt::format("NODE{} slots={}  # {}", lines.size() + 1, count[i],
                                  scenario.datacenters[i].name));
  return fmt::format(
      "a node for each datacenter, a hostfile (scripts/mpi -n {} --hostfile FILE) of "
      "these lines:\n  {}",
      scenario.ranks(), fmt::join(lines, "\n  "));
}

}  // namespace

std::string fitting_allocation(const Scenario& scenario, const std::vector<RankGroup>& groups,
                               int most) {
  const int ranks = scenario.ranks();
  const auto uniform = [&](int tasks) {
    return fmt::format(
        "--nodes={} --ntasks-per-node={} (srun --distribution=block, or scripts/mpi "
        "-n {} with {} slots a host)",
        ranks / tasks, tasks, ranks, tasks);
  };
  const bool has_to_be_one = std::ranges::any_of(
      groups, [&](const RankGroup& group) { return spans_datacenters(scenario, group); });
  if (has_to_be_one) return uniform(ranks);
  int best = 0;
  for (int tasks = ranks; tasks > 0; --tasks) {
    if (!fits(scenario, groups, tasks)) continue;
    if (best == 0) best = tasks;
    if (most > 0 && tasks > most) continue;
    best = tasks;
    break;
  }
  // One rank a node, for want of anything in common, is no advice.
  return best > 1 || ranks == static_cast<int>(scenario.datacenters.size())
             ? uniform(best)
             : node_for_each(scenario);
}

}  // namespace longhaul::harness
