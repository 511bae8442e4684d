#include <algorithm>
#include <map>
#include <utility>

#include "collective/iteration/communications.hpp"
#include "collective/iteration/lower_iteration.hpp"
#include "schedule/network_routes.hpp"

namespace longhaul::collective {
namespace {

/// Those that hold a copy of the weights together, node by node.
std::vector<std::vector<Rank>> groups_in_nodes(const Scenario& scenario, DeviceId stage) {
  const schedule::NetworkRoutes routes{scenario};
  std::vector<std::vector<Rank>> groups;
  for (const std::vector<Rank>& group : groups_of(scenario, stage, Members::shard)) {
    std::map<std::pair<DatacenterId, int>, std::vector<Rank>> nodes;
    for (const Rank rank : group)
      nodes[{scenario.datacenter_of(rank), routes.node_of(rank)}].push_back(rank);
    for (auto& [node, ranks] : nodes) groups.push_back(std::move(ranks));
  }
  return groups;
}

}  // namespace

std::vector<std::vector<Rank>> groups_of(const Scenario& scenario, DeviceId stage,
                                         Members members) {
  if (members == Members::node) return groups_in_nodes(scenario, stage);
  const Parallel& parallel = scenario.parallel;
  const int shard = members == Members::replicas ? 1 : parallel.shard;
  const auto group_of = [&](ReplicaId replica, int tensor) {
    switch (members) {
      case Members::tensor: return number(replica);
      case Members::shard: return tensor * (parallel.replicas / shard) + number(replica) / shard;
      case Members::copies:
      case Members::replicas:
      case Members::node: return tensor * shard + number(replica) % shard;
    }
    return 0;
  };
  const int ranks = parallel.replicas * parallel.tensor;
  std::vector<std::vector<Rank>> groups(at(ranks / count_of(members, parallel)));
  for (const ReplicaId replica : scenario.replica_ids())
    for (int tensor = 0; tensor < parallel.tensor; ++tensor)
      groups[at(group_of(replica, tensor))].push_back(scenario.rank(replica, stage, tensor));
  for (std::vector<Rank>& group : groups) std::ranges::sort(group);
  return groups;
}

Bytes size_in_group(const Communication& communication, const Scenario& scenario,
                    std::size_t group) {
  if (communication.members != Members::copies) return communication.size;
  const int shard = scenario.parallel.shard;
  const Bytes size =
      plan::shard_size(communication.size, shard, static_cast<std::int64_t>(group) % shard);
  return std::max(size, Bytes{1});
}

}  // namespace longhaul::collective
