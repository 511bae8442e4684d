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

/// Group g holds place g mod (ranks of a node) of each node; none where nodes differ.
std::vector<std::vector<Rank>> groups_across_nodes(const Scenario& scenario, DeviceId stage) {
  const auto nodes = groups_in_nodes(scenario, stage);
  const std::size_t near = nodes.front().size();
  const std::size_t far = to_size(scenario.parallel.shard) / near;
  for (const auto& node : nodes)
    if (node.size() != near) return {};
  std::vector<std::vector<Rank>> groups;
  for (std::size_t first = 0; first + far <= nodes.size(); first += far)
    for (std::size_t place = 0; place < near; ++place) {
      std::vector<Rank>& group = groups.emplace_back();
      for (std::size_t node = first; node < first + far; ++node)
        group.push_back(nodes[node][place]);
      std::ranges::sort(group);
    }
  return groups;
}

}  // namespace

std::vector<std::vector<Rank>> groups_of(const Scenario& scenario, DeviceId stage,
                                         Members members) {
  if (members == Members::node) return groups_in_nodes(scenario, stage);
  if (members == Members::across) return groups_across_nodes(scenario, stage);
  const Parallel& parallel = scenario.parallel;
  const int shard = members == Members::replicas ? 1 : parallel.shard;
  const auto group_of = [&](ReplicaId replica, int tensor) {
    switch (members) {
      case Members::tensor: return number(replica);
      case Members::shard: return tensor * (parallel.replicas / shard) + number(replica) / shard;
      case Members::copies:
      case Members::replicas:
      case Members::node:
      case Members::across: return tensor * shard + number(replica) % shard;
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
