#pragma once

#include <algorithm>
#include <map>
#include <tuple>
#include <utility>
#include <vector>

#include "plan/lowering/lower.hpp"
#include "scenario/scenario.hpp"
#include "schedule/schedule.hpp"

namespace longhaul::testing {

/// The same rows, which all replicas must follow, under temporal sharing: messages between
/// datacenters take turns by the position of their producer in its row (ties: replica).
inline Schedule in_cells(Schedule schedule, const Scenario& scenario, int cell) {
  schedule.cell = 1;
  const Plan plan = plan::lower(schedule, scenario);
  using Place = std::pair<std::size_t, ReplicaId>;  // position in the row, replica
  std::map<std::tuple<int, DeviceId, DeviceId>, std::vector<std::pair<Place, Block>>> turns;
  for (std::size_t i = 0; i < plan.ops.size(); ++i) {
    const OpId id{static_cast<std::uint32_t>(i)};
    if (plan.op(id).kind != OpKind::send || !plan.crosses_datacenters(id)) continue;
    const OpId producer = plan.after_of(id).front();
    const RankInfo& info = plan.ranks[index(plan.rank_of(id))];
    turns[{number(info.replica) / cell, info.device, plan.ranks[index(plan.op(id).peer)].device}]
        .push_back({{index(producer) - index(plan.lane_of(producer).first), info.replica},
                    plan.op(id).block()});
  }
  schedule.cell = cell;
  for (auto& [pair, messages] : turns) {
    std::ranges::sort(messages, {}, [](const auto& message) { return message.first; });
    LinkOrder order = std::apply(turns_order, pair);
    for (const auto& [place, block] : messages) order.messages.push_back({place.second, block});
    schedule.link_orders.push_back(std::move(order));
  }
  return schedule;
}

/// Two stages in two datacenters, one microbatch; messages of `bytes`, 1 byte/ns over the WAN with
/// 50 ns of latency, 2 bytes/ns between the nodes of a datacenter, one rank in each.
inline Scenario cell_of(int replicas, Bytes bytes) {
  Scenario scenario = uniform_scenario(2, 1);
  scenario.parallel.replicas = replicas;
  scenario.parallel.gradient_sync = GradientSync::none;
  scenario.costs.message.assign(2, bytes);
  scenario = spread(scenario, 2, Duration{50}, Duration{0});
  for (Link& link : scenario.links) link.bandwidth = 8_Gbps;
  for (const int datacenter : {0, 1}) {
    NodeInterfaces nodes;
    nodes.datacenter = DatacenterId{datacenter};
    nodes.internal = 16_Gbps;
    scenario.nodes.push_back(nodes);
  }
  return scenario;
}

}  // namespace longhaul::testing
