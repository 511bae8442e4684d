#include "plan/rows.hpp"

#include <algorithm>

#include <fmt/format.h>

#include "base/index.hpp"
#include "base/random.hpp"
#include "trace/timeline/columns.hpp"

namespace longhaul::plan {
namespace {

/// The plan's own ids translated to the timeline's tables.
PlanRows::Numbering numbering_in(Timeline& timeline, const Plan& plan) {
  PlanRows::Numbering numbers;
  numbers.schedule = trace::NameTable{timeline.schedules}.index_of(plan.schedule);
  trace::NameTable datacenters{timeline.datacenters};
  for (const std::string& name : plan.datacenters)
    numbers.datacenter.push_back(datacenters.index_of(name));
  trace::NameTable lanes{timeline.lanes};
  for (const Lane& l : plan.lanes) numbers.lane.push_back(lanes.index_of(l.name));
  trace::NameTable resources{timeline.resources};
  for (const Resource& r : plan.resources) numbers.resource.push_back(resources.index_of(r.name));
  trace::NameTable collectives{timeline.collectives};
  for (const SteppedCollective& each : plan.stepped)
    numbers.collective.push_back(collectives.index_of(name_of(each)));
  return numbers;
}

void append_range(Timeline& timeline, const Plan& plan, const OpTimes& times, int iteration,
                  std::size_t first, std::size_t last) {
  const PlanRows::Numbering numbers = numbering_in(timeline, plan);
  const PlanRows rows{plan, times, iteration, &numbers};
  timeline.rows.reserve(timeline.rows.size() + last - first);
  for (std::size_t i = first; i < last; ++i) timeline.rows.push_back(rows[i]);
}

}  // namespace

std::string name_of(const SteppedCollective& collective) {
  if (collective.chunk < 0) return to_string(collective.collective.kind);
  return fmt::format("{} of chunk {}", to_string(collective.collective.kind), collective.chunk);
}

void append_rows(Timeline& timeline, const Plan& plan, const OpTimes& times, int iteration) {
  append_range(timeline, plan, times, iteration, 0, plan.ops.size());
}

void append_rows(Timeline& timeline, const Plan& plan, const OpTimes& times, int iteration,
                 Rank only) {
  std::size_t first = plan.ops.size();
  std::size_t last = 0;
  for (const Lane& lane : plan.lanes) {
    if (lane.rank != only || lane.count == 0) continue;
    first = std::min(first, index(lane.first));
    last = std::max(last, index(lane.first) + lane.count);
  }
  if (first < last) append_range(timeline, plan, times, iteration, first, last);
}

double block_time_factor(const Run& run, DeviceId device, OpId op, int iteration) {
  double factor = 1.0;
  if (run.noise > 0) {
    Random random{derived_seed(run.seed, index(op), static_cast<std::uint64_t>(iteration))};
    factor = std::max(0.1, 1.0 + run.noise * random.normal());
  }
  if (!run.stragglers.empty()) factor *= run.stragglers[index(device)];
  return factor;
}

Plan with_stragglers(Plan plan, const Run& run) {
  if (run.stragglers.empty()) return plan;
  Run steady = run;
  steady.noise = 0;
  for (std::size_t i = 0; i < plan.ops.size(); ++i) {
    const OpId id{static_cast<std::uint32_t>(i)};
    Op& op = plan.ops[i];
    if (op.kind != OpKind::compute) continue;
    const DeviceId device = plan.ranks[index(plan.rank_of(id))].device;
    op.duration = scaled(op.duration, block_time_factor(steady, device, id, 0));
  }
  return plan;
}

std::vector<ResourceUse> occupancy(const Plan& plan, const OpTimes& times) {
  std::vector<ResourceUse> uses;
  for (const Resource& resource : plan.resources)
    uses.push_back({resource.name, resource.kind, {}, 0});
  for (std::size_t i = 0; i < plan.ops.size(); ++i) {
    const OpId id{static_cast<std::uint32_t>(i)};
    if (plan.op(id).kind == OpKind::recv) continue;  // its send holds for both
    for (const ResourceId resource : plan.resources_of(id)) {
      uses[index(resource)].busy += times[i].end - times[i].start;
      ++uses[index(resource)].holds;
    }
  }
  return uses;
}

}  // namespace longhaul::plan
