#include <algorithm>
#include <span>

#include "base/index.hpp"
#include "plan/lowering/lowering.hpp"
#include "plan/lowering/turns.hpp"

namespace longhaul::plan {

Route pooled_route(const Schedule& schedule, const Scenario& scenario, ReplicaId replica,
                   const Messages::Channel& channel, Network& network) {
  const Rank from = scenario.rank(replica, channel.from);
  const Rank to = scenario.rank(replica, channel.to);
  if (scenario.datacenter_of(from) == scenario.datacenter_of(to)) return network.route(from, to);
  const int cell = schedule.cell_of(replica);
  const CellReplicas members = cell_replicas(schedule, cell);
  std::vector<RankPair> pairs;
  for (const ReplicaId member : members.ids())
    pairs.push_back({scenario.rank(member, channel.from), scenario.rank(member, channel.to)});
  return network.pool(turns_name(cell, channel.from, channel.to), pairs);
}

std::optional<Refusal> order_by_turns(const Schedule& schedule, std::vector<Messages>& messages) {
  TurnTable table{schedule};
  if (table.stated_twice()) return table.stated_twice();
  for (int cell = 0; cell * schedule.cell < schedule.replicas; ++cell) {
    const CellReplicas replicas = cell_replicas(schedule, cell);
    const auto of_cell =
        std::span{messages}.subspan(index(replicas.first), to_size(replicas.count));
    for (std::size_t c = 0; c < of_cell.front().channels.size(); ++c) {
      const auto channel = of_cell.front().channels[c];
      if (!table.states(cell, channel.from, channel.to)) continue;
      const Result<std::vector<Turn>> turns = table.of({cell, replicas, of_cell}, c);
      if (!turns) return turns.refusal();
      std::vector<std::vector<Message>> ordered(of_cell.size());
      for (const Turn& turn : *turns) {
        const auto owner = to_size(turn.owner);
        ordered[owner].push_back(of_cell[owner].all[turn.message]);
      }
      for (std::size_t owner = 0; owner < of_cell.size(); ++owner)
        std::ranges::copy(ordered[owner],
                          of_cell[owner].all.begin() + of_cell[owner].channels[c].first);
    }
  }
  return table.not_taken();
}

}  // namespace longhaul::plan
