#include "harness/profile/plan_builder.hpp"

#include <algorithm>
#include <map>
#include <set>
#include <tuple>

#include <fmt/format.h>

namespace longhaul::harness {
namespace {

std::string lane_name(OpKind kind, MessageLeg leg, Rank peer) {
  const char* const name =
      leg == MessageLeg::whole ? longhaul::to_string(kind) : longhaul::to_string(leg);
  switch (kind) {
    case OpKind::compute:
    case OpKind::collective: break;
    case OpKind::send: return fmt::format("{}>{}", name, index(peer));
    case OpKind::recv: return fmt::format("{}<{}", name, index(peer));
  }
  return longhaul::to_string(kind);
}

}  // namespace

PlanBuilder::PlanBuilder(std::string name, int ranks, Arrangement arrangement) {
  plan_.schedule = std::move(name);
  plan_.arrangement = arrangement;
  plan_.stages = ranks;
  plan_.set_begin = {0, 0};  // set 0 is empty
  for (int rank = 0; rank < ranks; ++rank) {
    plan_.datacenters.push_back(fmt::format("dc{}", rank));
    plan_.ranks.push_back({ReplicaId{0}, DeviceId{rank}, DatacenterId{rank}});
  }
}

PlanBuilder::Handle PlanBuilder::add(Draft draft) {
  drafts_.push_back(std::move(draft));
  return Handle{drafts_.size() - 1};
}

PlanBuilder::Handle PlanBuilder::block(int rank, Duration duration, MicrobatchId microbatch) {
  Draft draft;
  draft.rank = rank;
  draft.op.duration = duration;
  draft.op.chunk = ChunkId{rank};
  draft.op.microbatch = microbatch;
  draft.op.resources = set_of(ResourceKind::device, {fmt::format("device {}", rank)});
  return add(std::move(draft));
}

PlanBuilder::Message PlanBuilder::message(int from, int to, Duration transfer, Duration latency,
                                          Bytes size, std::vector<std::string> resources) {
  if (resources.empty()) resources.push_back(fmt::format("link {}>{}", from, to));
  Draft send;
  send.rank = from;
  send.lane = OpKind::send;
  send.op.kind = OpKind::send;
  send.op.chunk = ChunkId{from};
  send.op.microbatch = MicrobatchId{messages_++};
  send.op.peer = Rank{to};
  send.op.duration = transfer;
  send.op.size = size;
  send.op.resources = set_of(ResourceKind::link, resources);
  Draft recv = send;
  recv.rank = to;
  recv.lane = OpKind::recv;
  recv.op.kind = OpKind::recv;
  recv.op.peer = Rank{from};
  recv.op.duration = latency;
  const Handle a = add(std::move(send));
  const Handle b = add(std::move(recv));
  drafts_[static_cast<std::size_t>(a)].other = b;
  drafts_[static_cast<std::size_t>(b)].other = a;
  return {a, b};
}

void PlanBuilder::place(int rank, ReplicaId replica, DeviceId device, int datacenter) {
  plan_.ranks[static_cast<std::size_t>(rank)] = {replica, device, DatacenterId{datacenter}};
  plan_.replicas = std::max(plan_.replicas, number(replica) + 1);
}

PlanBuilder::Message PlanBuilder::leg(int from, int to, MessageLeg leg, const Piece& piece,
                                      Duration transfer, Duration latency, Bytes size,
                                      std::vector<std::string> resources) {
  const Message made = message(from, to, transfer, latency, size, std::move(resources));
  for (const Handle side : {made.send, made.recv}) {
    Op& op = drafts_[static_cast<std::size_t>(side)].op;
    op.leg = leg;
    op.owner = static_cast<std::uint8_t>(piece.owner);
    op.piece = static_cast<std::uint8_t>(piece.piece);
    op.pieces = static_cast<std::uint8_t>(piece.pieces);
    op.chunk = piece.chunk;
    op.microbatch = piece.microbatch;
  }
  return made;
}

std::vector<PlanBuilder::Handle> PlanBuilder::collective(CollectiveKind kind,
                                                         std::vector<int> members,
                                                         Duration duration, Bytes size) {
  std::vector<Handle> group;
  for (const int member : members) {
    Draft draft;
    draft.rank = member;
    draft.lane = OpKind::collective;
    draft.op.kind = OpKind::collective;
    draft.op.collective = kind;
    draft.op.chunk = ChunkId{};
    draft.op.peer = Rank{members.front()};
    draft.op.match = static_cast<std::uint32_t>(groups_.size());
    draft.op.duration = duration;
    draft.op.size = size;
    draft.op.resources = set_of(ResourceKind::collective, {fmt::format("collective {}", member)});
    group.push_back(add(std::move(draft)));
  }
  groups_.push_back(group);
  return group;
}

void PlanBuilder::after(Handle op, Handle before) {
  drafts_[static_cast<std::size_t>(op)].after.push_back(before);
}

ResourceSetId PlanBuilder::set_of(ResourceKind kind, const std::vector<std::string>& names) {
  for (const std::string& name : names) {
    const auto found = std::ranges::find(plan_.resources, name, &Resource::name);
    plan_.set_items.push_back(
        ResourceId{static_cast<std::uint32_t>(found - plan_.resources.begin())});
    if (found != plan_.resources.end()) continue;
    plan_.resources.push_back({name, kind, 1, {}, 0});
  }
  plan_.set_begin.push_back(static_cast<std::uint32_t>(plan_.set_items.size()));
  return ResourceSetId{static_cast<std::uint32_t>(plan_.set_begin.size() - 2)};
}

Plan PlanBuilder::build() {
  lay_out_lanes();
  connect();
  return plan_;
}

void PlanBuilder::lay_out_lanes() {
  ids_.resize(drafts_.size());
  std::map<std::tuple<int, OpKind, MessageLeg, Rank>, std::vector<std::size_t>> lanes;
  for (std::size_t rank = 0; rank < plan_.ranks.size(); ++rank)
    lanes[{static_cast<int>(rank), OpKind::compute, MessageLeg::whole, kNone<Rank>}];
  for (std::size_t i = 0; i < drafts_.size(); ++i) {
    const Draft& draft = drafts_[i];
    const bool message = draft.lane == OpKind::send || draft.lane == OpKind::recv;
    lanes[{draft.rank, draft.lane, draft.op.leg, message ? draft.op.peer : kNone<Rank>}].push_back(
        i);
  }
  for (const auto& [key, ops] : lanes) {
    const auto& [rank, kind, leg, peer] = key;
    const LaneId lane{static_cast<std::uint32_t>(plan_.lanes.size())};
    plan_.lanes.push_back({lane_name(kind, leg, peer), kind, Rank{rank}, peer,
                           OpId{static_cast<std::uint32_t>(plan_.ops.size())},
                           static_cast<std::uint32_t>(ops.size())});
    std::set<ResourceId> held;
    for (const std::size_t i : ops) {
      ids_[i] = OpId{static_cast<std::uint32_t>(plan_.ops.size())};
      plan_.ops.push_back(drafts_[i].op);
      plan_.ops.back().lane = lane;
      for (const ResourceId id : plan_.resources_of(ids_[i])) held.insert(id);
    }
    if (kind == OpKind::recv) continue;
    for (const ResourceId id : held) ++plan_.resources[index(id)].lanes;
  }
}

void PlanBuilder::connect() {
  for (std::size_t i = 0; i < drafts_.size(); ++i) {
    Op& op = plan_.ops[index(ids_[i])];
    if (op.kind == OpKind::send || op.kind == OpKind::recv)
      op.match = static_cast<std::uint32_t>(id(drafts_[i].other));
    for (const Handle before : drafts_[i].after) plan_.add_after(op, id(before));
  }
  for (const auto& group : groups_) {
    plan_.collectives.emplace_back();
    for (const Handle member : group) plan_.collectives.back().push_back(id(member));
  }
}

}  // namespace longhaul::harness
