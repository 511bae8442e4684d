#include "plan/lowering/lower_collective.hpp"

#include "base/index.hpp"
#include "plan/lowering/lanes.hpp"
#include "plan/lowering/step_lowering.hpp"
#include "plan/network/network.hpp"

namespace longhaul::plan {

Result<Plan> lower_collective(const Collective& collective, const Scenario& scenario) {
  Plan plan;
  Network network{scenario, plan};
  plan.schedule = to_text(collective.kind);
  plan.stages = scenario.parallel.stages;
  plan.replicas = scenario.parallel.replicas;
  for (const Datacenter& datacenter : scenario.datacenters)
    plan.datacenters.push_back(datacenter.name);
  StepLowering steps{plan, network};
  steps.add(collective, ChunkId{-1});
  plan.ops.reserve(steps.ops());
  for (const Rank rank : ids<Rank>(scenario.ranks())) {
    plan.ranks.push_back(network.info(rank));
    add_lane(plan, "compute", OpKind::compute, rank, kNone<Rank>, 0);
    steps.lay_out(rank);
  }
  steps.fill();
  if (network.missing_link()) return *network.missing_link();
  return plan;
}

BytesByLevel bytes_by_level(const Collective& collective, const CollectiveSteps& steps,
                            const Scenario& scenario) {
  const schedule::NetworkRoutes routes{scenario};
  BytesByLevel bytes;
  for (const StepMessage& message : steps.messages) {
    const Rank from = collective.members[at(message.from)];
    const Rank to = collective.members[at(message.to)];
    switch (routes.level(from, to)) {
      case NetworkLevel::node: bytes.node += message.size; break;
      case NetworkLevel::datacenter: bytes.datacenter += message.size; break;
      case NetworkLevel::wan: bytes.wan += message.size; break;
    }
  }
  return bytes;
}

}  // namespace longhaul::plan
