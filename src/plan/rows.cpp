#include "plan/rows.hpp"

#include <algorithm>

#include "base/index.hpp"
#include "base/random.hpp"
#include "trace/timeline/columns.hpp"

namespace longhaul::plan {
namespace {

RowKind row_kind(const Op& op) {
  switch (op.kind) {
    case OpKind::compute: return row_kind_of(op.block_kind);
    case OpKind::send: return RowKind::send;
    case OpKind::recv: return RowKind::recv;
    case OpKind::collective: return row_kind_of(op.collective);
  }
  return {};
}

/// The plan's own ids translated to the timeline's tables.
struct Translation {
  std::int32_t schedule = 0;
  std::vector<std::int32_t> datacenter, lane, resource;

  Translation(Timeline& timeline, const Plan& plan) {
    schedule = trace::NameTable{timeline.schedules}.index_of(plan.schedule);
    trace::NameTable datacenters{timeline.datacenters};
    for (const std::string& name : plan.datacenters)
      datacenter.push_back(datacenters.index_of(name));
    trace::NameTable lanes{timeline.lanes};
    for (const Lane& l : plan.lanes) lane.push_back(lanes.index_of(l.name));
    trace::NameTable resources{timeline.resources};
    for (const Resource& r : plan.resources) resource.push_back(resources.index_of(r.name));
  }
};

TimelineRow make_row(const Plan& plan, const Translation& names, const OpTimes& times,
                     int iteration, OpId id) {
  const Op& op = plan.op(id);
  const Rank rank = plan.rank_of(id);
  const RankInfo& info = plan.ranks[index(rank)];
  const auto resources = plan.resources_of(id);
  TimelineRow row;
  row.schedule = names.schedule;
  row.iteration = iteration;
  row.op = static_cast<std::int64_t>(index(id));
  row.rank = static_cast<std::int32_t>(rank);
  row.replica = number(info.replica);
  row.device = number(info.device);
  row.datacenter = names.datacenter[index(info.datacenter)];
  row.lane = names.lane[index(op.lane)];
  row.resource = resources.empty() ? -1 : names.resource[index(resources.front())];
  row.kind = row_kind(op);
  row.chunk = op.chunk;
  row.microbatch = op.microbatch;
  row.part = op.part;
  row.parts = op.parts;
  row.peer = op.peer == kNone<Rank> ? -1 : static_cast<std::int32_t>(op.peer);
  row.leg = op.leg;
  row.owner = number(plan.owner_of(id));
  row.piece = op.piece;
  row.pieces = op.pieces;
  row.size_bytes = op.size.count();
  row.planned_ns = op.duration.count();
  row.ready_ns = times[index(id)].ready.count();
  row.start_ns = times[index(id)].start.count();
  row.end_ns = times[index(id)].end.count();
  const OpId cause = times[index(id)].bound_by;
  row.bound_by = cause == kNone<OpId> ? -1 : static_cast<std::int64_t>(index(cause));
  row.bound_kind = times[index(id)].bound_kind;
  return row;
}

void append_range(Timeline& timeline, const Plan& plan, const OpTimes& times, int iteration,
                  std::size_t first, std::size_t last) {
  const Translation names{timeline, plan};
  timeline.rows.reserve(timeline.rows.size() + last - first);
  for (std::size_t i = first; i < last; ++i)
    timeline.rows.push_back(
        make_row(plan, names, times, iteration, OpId{static_cast<std::uint32_t>(i)}));
}

}  // namespace

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
