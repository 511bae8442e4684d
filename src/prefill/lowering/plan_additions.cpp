#include "prefill/lowering/plan_additions.hpp"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "base/error.hpp"
#include "base/index.hpp"

namespace longhaul::prefill {

PlanAdditions::PlanAdditions(const Plan& training) : training_{training}, base_{training} {
  // A set of nothing, for messages that hold no link.
  nothing_ = ResourceSetId{static_cast<std::uint32_t>(base_.set_begin.size() - 1)};
  base_.set_begin.push_back(base_.set_begin.back());
  compute_.resize(training.ranks.size(), kNone<LaneId>);
  for (std::size_t i = 0; i < training.lanes.size(); ++i) {
    LaneId& first = compute_[index(training.lanes[i].rank)];
    if (training.lanes[i].kind == OpKind::compute && first == kNone<LaneId>)
      first = LaneId{static_cast<std::uint32_t>(i)};
  }
}

ResourceSetId PlanAdditions::alone(ResourceId resource) {
  const ResourceSetId set{static_cast<std::uint32_t>(base_.set_begin.size() - 1)};
  base_.set_items.push_back(resource);
  base_.set_begin.push_back(static_cast<std::uint32_t>(base_.set_items.size()));
  return set;
}

ResourceSetId PlanAdditions::add_resource(std::string name, ResourceKind kind, int capacity) {
  LONGHAUL_ASSERT(!is_open_, "{} is added after ops", name);
  Resource& resource = base_.resources.emplace_back();
  resource.name = std::move(name);
  resource.kind = kind;
  resource.capacity = static_cast<std::uint32_t>(capacity);
  return alone(ResourceId{static_cast<std::uint32_t>(base_.resources.size() - 1)});
}

ResourceSetId PlanAdditions::interface_of(Rank rank) {
  LONGHAUL_ASSERT(!is_open_, "the interface of rank {} is asked for after ops", index(rank));
  const RankInfo& own = training_.ranks[index(rank)];
  for (const Lane& lane : training_.lanes) {
    const RankInfo& from = training_.ranks[index(lane.rank)];
    if (lane.kind != OpKind::send || lane.count == 0 || from.datacenter != own.datacenter ||
        from.node != own.node)
      continue;
    for (const ResourceId held : training_.resources_of(lane.first))
      if (training_.resources[index(held)].kind == ResourceKind::internal_out) return alone(held);
  }
  return add_resource(fmt::format("internal-out of rank {}", index(rank)),
                      ResourceKind::internal_out);
}

Rank PlanAdditions::decode_rank_of(Rank gpu) const {
  const DatacenterId own = training_.ranks[index(gpu)].datacenter;
  for (std::size_t rank = 0; rank < training_.ranks.size(); ++rank)
    if (training_.ranks[rank].role == RankRole::decode && training_.ranks[rank].datacenter == own)
      return Rank{static_cast<std::int32_t>(rank)};
  fail(
      "rank {} serves and its datacenter has no decode rank (keys and values stay in their "
      "datacenter). Add [[service]] with role = \"decode\" there.",
      index(gpu));
}

ResourceSetId PlanAdditions::device_of(Rank rank) const {
  const LaneId lane = blocks_of(rank);
  LONGHAUL_ASSERT(lane != kNone<LaneId>, "rank {} has no block", index(rank));
  return training_.op(training_.lanes[index(lane)].first).resources;
}

void PlanAdditions::open() {
  if (!std::exchange(is_open_, true)) draft_ = plan::thaw(base_);
}

LaneId PlanAdditions::lane(const std::string& name, OpKind kind, Rank rank, Rank peer) {
  open();
  const auto [found, is_new] = lanes_.try_emplace({name, kind, rank, peer}, LaneId{});
  if (!is_new) return found->second;
  std::string own = name;
  if (kind == OpKind::send) own = fmt::format("{}>{}", name, index(peer));
  if (kind == OpKind::recv) own = fmt::format("{}<{}", name, index(peer));
  return found->second = draft_.add_lane(std::move(own), kind, rank, peer);
}

PlanAdditions::Handle PlanAdditions::append(LaneId lane, const Op& op) {
  const Handle handle = draft_.insert(lane, draft_.lane(lane).size(), op);
  const auto at = static_cast<std::size_t>(handle);
  places_.resize(std::max(places_.size(), at + 1));
  places_[at] = static_cast<std::uint32_t>(draft_.lane(lane).size() - 1);
  return handle;
}

std::pair<PlanAdditions::Handle, PlanAdditions::Handle> PlanAdditions::append_message(
    const std::string& name, Rank from, Rank to, Op op, const MessageTakes& takes) {
  op.resources = takes.holds.value_or(nothing_);
  op.kind = OpKind::send;
  op.duration = takes.transfer;
  const Handle send = append(lane(name, OpKind::send, from, to), op);
  op.kind = OpKind::recv;
  op.duration = takes.latency;
  const Handle recv = append(lane(name, OpKind::recv, to, from), op);
  draft_.join(send, recv);
  return {send, recv};
}

Plan PlanAdditions::make() {
  open();
  Plan plan = plan::freeze(draft_);
  place_lanes();
  for (const Lane& lane : plan.lanes)
    first_.push_back(static_cast<std::uint32_t>(index(lane.first)));
  plan.extras.noise_ids = noise_ids(plan.ops.size());
  return plan;
}

/// Training meets the noise that it meets alone.
std::vector<OpId> PlanAdditions::noise_ids(std::size_t ops) const {
  std::vector<OpId> ids(ops, kNone<OpId>);
  const std::vector<OpId> training = training_ids();
  for (std::size_t i = 0; i < training.size(); ++i)
    ids[index(training[i])] = OpId{static_cast<std::uint32_t>(i)};
  auto next = static_cast<std::uint32_t>(training.size());
  for (OpId& id : ids)
    if (id == kNone<OpId>) id = OpId{next++};
  return ids;
}

/// Where lanes of the draft stand in the plan: a rank's lie together.
void PlanAdditions::place_lanes() {
  const std::vector<Lane>& lanes = draft_.frame().lanes;
  std::vector<std::size_t> first(training_.ranks.size(), lanes.size()), order(lanes.size());
  for (std::size_t l = 0; l < lanes.size(); ++l) {
    order[l] = l;
    first[index(lanes[l].rank)] = std::min(first[index(lanes[l].rank)], l);
  }
  std::ranges::stable_sort(order, {}, [&](std::size_t l) { return first[index(lanes[l].rank)]; });
  lane_places_.resize(lanes.size());
  for (std::size_t l = 0; l < lanes.size(); ++l) lane_places_[order[l]] = l;
}

OpId PlanAdditions::id(Handle handle) const {
  const std::size_t lane = lane_places_[index(draft_.op(handle).lane)];
  return OpId{first_[lane] + places_[static_cast<std::size_t>(handle)]};
}

std::vector<OpId> PlanAdditions::training_ids() const {
  std::vector<OpId> ids(training_.ops.size());
  for (std::size_t l = 0; l < training_.lanes.size(); ++l)
    for (std::uint32_t k = 0; k < training_.lanes[l].count; ++k)
      ids[index(training_.lanes[l].first) + k] = OpId{first_[lane_places_[l]] + k};
  return ids;
}

}  // namespace longhaul::prefill
