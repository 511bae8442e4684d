#include "planner/sites/cell_scenario.hpp"

#include <algorithm>

#include "base/error.hpp"
#include "base/index.hpp"
#include "schedule/ring_time.hpp"

namespace longhaul::planner {
namespace {

std::optional<Refusal> why_no_link(const GpuInventory& inventory, DatacenterId from,
                                   DatacenterId to) {
  if (inventory.scenario().link(from, to) != nullptr) return std::nullopt;
  const std::string& x = inventory.name(from);
  const std::string& y = inventory.name(to);
  return refused(
      "there is no link from {} to {} (pipelines would go from one to the other). Add [[link]] "
      "between = [\"{}\", \"{}\"], or take another --order or --search exact.",
      x, y, x, y);
}

/// Datacenter of each stage.
std::vector<DatacenterId> stages_of(const StagePlacement& placement) {
  std::vector<DatacenterId> where;
  for (const DatacenterStages& share : placement)
    where.insert(where.end(), to_size(share.stages), share.datacenter);
  return where;
}

void set_costs(const GpuInventory& inventory, const std::vector<DatacenterId>& where,
               Scenario& scenario) {
  scenario.costs = inventory.costs();
  Costs& costs = scenario.costs;
  for (std::size_t stage = 0; stage < where.size(); ++stage) {
    const double speed = scenario.datacenters[index(where[stage])].speed;
    if (speed == 1) continue;
    for (auto* times :
         {&costs.forward, &costs.backward, &costs.dgrad, &costs.wgrad, &costs.recompute})
      (*times)[stage] = scaled((*times)[stage], 1 / speed);
    if (!costs.optimizer.empty())
      costs.optimizer[stage] = scaled(costs.optimizer[stage], 1 / speed);
  }
}

Bandwidth divided(Bandwidth rate, int parts) {
  return rate.is_unlimited() ? rate : Bandwidth{rate.bits_per_second() / parts};
}

Result<Scenario> placed(const GpuInventory& inventory, const SiteLayout& layout, int replicas) {
  const std::vector<DatacenterId> where = stages_of(layout.placement);
  LONGHAUL_ASSERT(static_cast<int>(where.size()) == inventory.stages(), "{} stages of {}",
                  where.size(), inventory.stages());
  if (auto why = why_unlinked(inventory, layout.placement)) return *std::move(why);
  Scenario scenario = inventory.scenario();
  scenario.text.clear();
  scenario.parallel.replicas = replicas;
  scenario.parallel.order = kTensorStageReplica;
  if (scenario.parallel.gradient_sync == GradientSync::zero3) scenario.parallel.shard = replicas;
  scenario.parallel.cell = layout.pipelines;
  set_costs(inventory, where, scenario);
  scenario.placement.clear();
  for (int replica = 0; replica < replicas; ++replica)
    scenario.placement.insert(scenario.placement.end(), where.begin(), where.end());
  return scenario;
}

}  // namespace

std::optional<Refusal> why_unlinked(const GpuInventory& inventory,
                                    const StagePlacement& placement) {
  for (std::size_t i = 0; i + 1 < placement.size(); ++i) {
    const DatacenterId here = placement[i].datacenter;
    const DatacenterId there = placement[i + 1].datacenter;
    if (auto why = why_no_link(inventory, here, there)) return why;
    if (auto why = why_no_link(inventory, there, here)) return why;
  }
  return std::nullopt;
}

Result<Scenario> cell_scenario(const GpuInventory& inventory, const SiteLayout& layout,
                               int pipelines) {
  Result<Scenario> whole = placed(inventory, layout, pipelines);
  if (!whole) return whole;
  Scenario scenario = *std::move(whole);
  scenario.parallel.cell = pipelines;
  scenario.parallel.gradient_sync = GradientSync::none;
  for (Link& link : scenario.links) {
    link.aggregate = divided(link.aggregate, layout.cells);
    if (link.sharing == Sharing::datacenter) link.bandwidth = divided(link.bandwidth, layout.cells);
  }
  return scenario;
}

Scenario placed_scenario(const GpuInventory& inventory, const SiteLayout& layout) {
  return placed(inventory, layout, layout.replicas()).or_throw();
}

Duration all_reduce_inside(const GpuInventory& inventory, DatacenterId where, StageId stage,
                           int replicas) {
  const Scenario& scenario = inventory.scenario();
  const GradientSync sync = scenario.parallel.gradient_sync;
  if (replicas < 2 || sync == GradientSync::none) return Duration::zero();
  schedule::RingHop hop;
  if (const Link* const link = scenario.link(where, where)) hop = {link->bandwidth, link->latency};
  // As if each ring went through nodes and between them.
  if (const NodeInterfaces* const nodes = scenario.interfaces(where)) {
    hop.rate = std::min({hop.rate, nodes->internal, nodes->device});
    hop.latency = std::max({hop.latency, nodes->internal_latency, nodes->device_latency});
  }
  const Bytes weights = inventory.costs().weights[at(stage)];
  if (sync == GradientSync::two_datacenter) return schedule::exchange_time(hop, weights);
  if (sync == GradientSync::ring_rate) return schedule::all_reduce_at_rate(hop, weights, replicas);
  return 2 * schedule::ring_time(hop, weights, replicas);
}

Duration all_reduce_time(const GpuInventory& inventory, const SiteLayout& layout) {
  Duration longest{};
  StageId stage{};
  for (const DatacenterStages& share : layout.placement) {
    for (const int end = stage + share.stages; stage < end; ++stage)
      longest = std::max(longest,
                         all_reduce_inside(inventory, share.datacenter, stage, layout.replicas()));
  }
  return longest;
}

}  // namespace longhaul::planner
