#include "plan/plan_draft.hpp"

#include <algorithm>
#include <functional>
#include <numeric>
#include <utility>

#include "base/index.hpp"

namespace longhaul::plan {

PlanDraft::PlanDraft(std::string name) {
  plan_.schedule = std::move(name);
  plan_.stages = 1;
  plan_.microbatches = 1;
  plan_.set_begin.push_back(0);
}

Rank PlanDraft::add_rank(const std::string& datacenter, int node) {
  const auto found = std::ranges::find(plan_.datacenters, datacenter);
  const DatacenterId at{static_cast<std::int32_t>(found - plan_.datacenters.begin())};
  if (found == plan_.datacenters.end()) plan_.datacenters.push_back(datacenter);
  const auto count = static_cast<std::int32_t>(plan_.ranks.size());
  plan_.ranks.push_back({ReplicaId{count}, DeviceId{0}, at, node});
  plan_.replicas = count + 1;
  return Rank{count};
}

ResourceId PlanDraft::add_resource(std::string name, ResourceKind kind, std::uint32_t capacity,
                                   Serve serve) {
  plan_.resources.push_back({std::move(name), kind, capacity, {}, 0, serve});
  return ResourceId{static_cast<std::uint32_t>(plan_.resources.size() - 1)};
}

LaneId PlanDraft::add_lane(Rank rank, std::string name, OpKind kind, std::vector<ResourceId> holds,
                           Serve serve) {
  DraftLane& added = lanes_.emplace_back();
  added.lane = {std::move(name), kind, rank, kNone<Rank>, OpId{}, 0, serve};
  for (const ResourceId held : holds) ++plan_.resources[index(held)].lanes;
  const ResourceSetId next{static_cast<std::uint32_t>(plan_.set_begin.size() - 1)};
  const auto [set, is_new] = sets_.try_emplace(std::move(holds), next);
  added.holds = set->second;
  if (is_new) {
    plan_.set_items.insert(plan_.set_items.end(), set->first.begin(), set->first.end());
    plan_.set_begin.push_back(static_cast<std::uint32_t>(plan_.set_items.size()));
  }
  return LaneId{static_cast<std::uint32_t>(lanes_.size() - 1)};
}

PlanDraft::Handle PlanDraft::add(LaneId lane, const Op& op) {
  const Handle handle{ops_.size()};
  ops_.push_back(op);
  ops_.back().lane = lane;
  ops_.back().kind = lanes_[index(lane)].lane.kind;
  ops_.back().resources = lanes_[index(lane)].holds;
  lanes_[index(lane)].ops.push_back(handle);
  return handle;
}

PlanDraft::Handle PlanDraft::add_block(LaneId lane, Duration duration, const Block& block) {
  Op op;
  op.block_kind = block.kind;
  op.part = block.part;
  op.parts = block.parts;
  op.chunk = std::max(block.chunk, ChunkId{0});
  op.microbatch = std::max(block.microbatch, MicrobatchId{0});
  op.duration = duration;
  return add(lane, op);
}

PlanDraft::Message PlanDraft::add_message(LaneId sends, LaneId receives, Duration transfer,
                                          Duration latency, Bytes size, const Block& producer) {
  Op op;
  op.block_kind = producer.kind;
  op.chunk = std::max(producer.chunk, ChunkId{0});
  op.microbatch = std::max(producer.microbatch, MicrobatchId{0});
  op.size = size;
  op.duration = transfer;
  op.peer = lanes_[index(receives)].lane.rank;
  lanes_[index(sends)].lane.peer = op.peer;
  const Handle send = add(sends, op);
  op.duration = latency;
  op.peer = lanes_[index(sends)].lane.rank;
  lanes_[index(receives)].lane.peer = op.peer;
  const Handle recv = add(receives, op);
  op_of(recv).resources = op_of(send).resources;
  op_of(send).match = static_cast<std::uint32_t>(recv);
  op_of(recv).match = static_cast<std::uint32_t>(send);
  return {send, recv};
}

std::vector<PlanDraft::Message> PlanDraft::add_slices(LaneId sends, LaneId receives, int slices,
                                                      Duration transfer, Duration latency,
                                                      Bytes size, const Block& producer) {
  std::vector<Message> made;
  const auto share = [&](std::int64_t all, int i) {
    return all / slices + (i < all % slices ? 1 : 0);
  };
  for (int i = 0; i < slices; ++i) {
    made.push_back(add_message(sends, receives, Duration{share(transfer.count(), i)}, latency,
                               Bytes{share(size.count(), i)}, producer));
    for (const Handle side : {made.back().send, made.back().recv})
      plan_.extras.slices.push_back({OpId{static_cast<std::uint32_t>(side)}, i, slices});
  }
  return made;
}

std::vector<PlanDraft::Handle> PlanDraft::add_collective(CollectiveKind kind,
                                                         const std::vector<LaneId>& lanes,
                                                         Duration duration) {
  std::vector<Handle> members;
  std::vector<OpId> group;  // handles, until make()
  for (const LaneId lane : lanes) {
    Op op;
    op.collective = kind;
    op.chunk = ChunkId{0};
    op.peer = lanes_[index(lanes.front())].lane.rank;
    op.match = static_cast<std::uint32_t>(plan_.collectives.size());
    op.duration = duration;
    members.push_back(add(lane, op));
    group.push_back(OpId{static_cast<std::uint32_t>(members.back())});
  }
  plan_.collectives.push_back(std::move(group));
  return members;
}

void PlanDraft::after(Handle op, Handle before) {
  links_.push_back({op, before, 0, Link::Kind::near});
}
void PlanDraft::after(Handle op, Handle before, int iterations_back) {
  links_.push_back({op, before, iterations_back, Link::Kind::far});
}
void PlanDraft::meets(Handle op, Handle before, int iterations_back) {
  links_.push_back({op, before, iterations_back, Link::Kind::weak});
}
void PlanDraft::window(Handle op, Duration not_before, Duration deadline) {
  plan_.extras.windows.push_back({OpId{static_cast<std::uint32_t>(op)}, not_before, deadline});
}
void PlanDraft::priority(Handle op, std::int32_t priority) {
  plan_.extras.priorities.push_back({OpId{static_cast<std::uint32_t>(op)}, priority});
}
void PlanDraft::serves(Handle op, std::int32_t request, std::int32_t tokens) {
  plan_.extras.served.push_back({OpId{static_cast<std::uint32_t>(op)}, request, tokens});
}
void PlanDraft::task(Handle op, TaskKind kind) {
  plan_.extras.tasks.push_back({OpId{static_cast<std::uint32_t>(op)}, kind});
}
void PlanDraft::source(
    LaneId lane, std::function<std::unique_ptr<OpSource>(const std::vector<OpId>& ops)> make) {
  lanes_[index(lane)].source = std::move(make);
}

Plan PlanDraft::make() {
  lay_out();
  connect();
  return std::move(plan_);
}

void PlanDraft::lay_out() {
  std::vector<std::uint32_t> by_rank(lanes_.size());
  std::iota(by_rank.begin(), by_rank.end(), 0U);
  std::ranges::stable_sort(by_rank, {}, [this](std::uint32_t i) { return lanes_[i].lane.rank; });
  lane_ids_.resize(lanes_.size());
  ids_.resize(ops_.size());
  for (const std::uint32_t i : by_rank) {
    DraftLane& draft = lanes_[i];
    lane_ids_[i] = LaneId{static_cast<std::uint32_t>(plan_.lanes.size())};
    draft.lane.first = OpId{static_cast<std::uint32_t>(plan_.ops.size())};
    draft.lane.count = static_cast<std::uint32_t>(draft.ops.size());
    std::vector<OpId> own;
    for (const Handle handle : draft.ops) {
      own.push_back(OpId{static_cast<std::uint32_t>(plan_.ops.size())});
      ids_[static_cast<std::size_t>(handle)] = own.back();
      plan_.ops.push_back(op_of(handle));
      plan_.ops.back().lane = lane_ids_[i];
    }
    plan_.lanes.push_back(draft.lane);
    if (draft.source)
      plan_.extras.sources.push_back(
          {lane_ids_[i], [make = draft.source, own] { return make(own); }});
  }
}

void PlanDraft::connect() {
  for (Op& op : plan_.ops)
    if (op.kind == OpKind::send || op.kind == OpKind::recv)
      op.match = static_cast<std::uint32_t>(index(ids_[op.match]));
  for (std::vector<OpId>& group : plan_.collectives)
    for (OpId& member : group) member = ids_[index(member)];
  std::ranges::stable_sort(links_, {}, &Link::op);
  for (const Link& link : links_) {
    if (link.kind == Link::Kind::near)
      plan_.add_after(plan_.ops[index(id(link.op))], id(link.before));
    else
      plan_.extras.far.push_back(
          {id(link.op), id(link.before), link.iterations_back,
           link.kind == Link::Kind::weak ? Strength::weak : Strength::strong});
  }
  const auto renumber = [this](auto& table) {
    for (auto& entry : table) entry.op = ids_[index(entry.op)];
  };
  renumber(plan_.extras.windows);
  renumber(plan_.extras.priorities);
  renumber(plan_.extras.slices);
  renumber(plan_.extras.served);
  renumber(plan_.extras.tasks);
  std::ranges::sort(plan_.extras.slices, {}, &OpSlice::op);
  std::ranges::sort(plan_.extras.served, {}, &OpServed::op);
  std::ranges::sort(plan_.extras.tasks, {}, &OpTask::op);
}

}  // namespace longhaul::plan
