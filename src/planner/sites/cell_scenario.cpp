#include "planner/sites/cell_scenario.hpp"

#include <algorithm>

#include "base/error.hpp"
#include "base/index.hpp"
#include "schedule/ring_time.hpp"

namespace longhaul::planner {
namespace {

std::optional<Refusal> why_no_link(const GpuInventory& supply, DatacenterId from, DatacenterId to) {
  if (supply.scenario().link(from, to) != nullptr) return std::nullopt;
  const std::string& x = supply.name(from);
  const std::string& y = supply.name(to);
  return refused(
      "there is no link from {} to {} (pipelines would go from one to the other). Add [[link]] "
      "between = [\"{}\", \"{}\"], or take another --order or --search exact.",
      x, y, x, y);
}

/// Datacenter of each stage.
std::vector<DatacenterId> stages_of(const StagePlacement& way) {
  std::vector<DatacenterId> where;
  for (const DatacenterStages& share : way)
    where.insert(where.end(), to_size(share.stages), share.datacenter);
  return where;
}

void set_costs(const GpuInventory& supply, const std::vector<DatacenterId>& where,
               Scenario& scenario) {
  scenario.costs = supply.costs();
  Costs& costs = scenario.costs;
  for (std::size_t stage = 0; stage < where.size(); ++stage) {
    const double speed = scenario.datacenters[index(where[stage])].speed;
    if (speed == 1) continue;
    for (auto* times :
         {&costs.forward, &costs.backward, &costs.dgrad, &costs.wgrad, &costs.recompute})
      (*times)[stage] = scaled((*times)[stage], 1 / speed);
  }
}

Bandwidth divided(Bandwidth rate, int parts) {
  return rate.is_unlimited() ? rate : Bandwidth{rate.bits_per_second() / parts};
}

Result<Scenario> placed(const GpuInventory& supply, const SiteLayout& layout, int replicas) {
  const std::vector<DatacenterId> where = stages_of(layout.way);
  LONGHAUL_ASSERT(static_cast<int>(where.size()) == supply.stages(), "{} stages of {}",
                  where.size(), supply.stages());
  for (std::size_t i = 0; i + 1 < layout.way.size(); ++i) {
    const DatacenterId here = layout.way[i].datacenter;
    const DatacenterId next = layout.way[i + 1].datacenter;
    if (auto why = why_no_link(supply, here, next)) return *std::move(why);
    if (auto why = why_no_link(supply, next, here)) return *std::move(why);
  }
  Scenario scenario = supply.scenario();
  scenario.text.clear();
  scenario.parallel.replicas = replicas;
  scenario.parallel.cell = layout.pipelines;
  set_costs(supply, where, scenario);
  scenario.placement.clear();
  for (int replica = 0; replica < replicas; ++replica)
    scenario.placement.insert(scenario.placement.end(), where.begin(), where.end());
  return scenario;
}

}  // namespace

Result<Scenario> cell_scenario(const GpuInventory& supply, const SiteLayout& layout,
                               int pipelines) {
  Result<Scenario> whole = placed(supply, layout, pipelines);
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

Scenario placed_scenario(const GpuInventory& supply, const SiteLayout& layout) {
  return placed(supply, layout, layout.replicas()).or_throw();
}

Duration all_reduce_inside(const GpuInventory& supply, DatacenterId where, StageId stage,
                           int replicas) {
  const Scenario& scenario = supply.scenario();
  const GradientSync sync = scenario.parallel.gradient_sync;
  if (replicas < 2 || sync == GradientSync::none) return Duration::zero();
  schedule::RingHop hop;
  if (const Link* const link = scenario.link(where, where)) hop = {link->bandwidth, link->latency};
  if (const NodeInterfaces* const nodes = scenario.interfaces(where))
    hop.rate = std::min(hop.rate, nodes->internal);
  const Bytes weights = supply.costs().weights[at(stage)];
  if (sync == GradientSync::two_datacenter) return schedule::exchange_time(hop, weights);
  if (sync == GradientSync::ring_rate) return schedule::all_reduce_at_rate(hop, weights, replicas);
  return 2 * schedule::ring_time(hop, weights, replicas);
}

Duration all_reduce_time(const GpuInventory& supply, const SiteLayout& layout) {
  Duration longest{};
  StageId stage{};
  for (const DatacenterStages& share : layout.way) {
    for (const int end = stage + share.stages; stage < end; ++stage)
      longest =
          std::max(longest, all_reduce_inside(supply, share.datacenter, stage, layout.replicas()));
  }
  return longest;
}

}  // namespace longhaul::planner
