#include "plan/rewrite/draft.hpp"

#include <algorithm>

#include "base/error.hpp"
#include "plan/rewrite/renumber.hpp"

namespace longhaul::plan {
namespace {

Draft::Handle handle_of(OpId id) { return Draft::Handle{static_cast<std::uint32_t>(index(id))}; }
OpId id_of(Draft::Handle handle) { return OpId{static_cast<std::uint32_t>(handle)}; }
bool is_side(const Op& op) { return op.kind == OpKind::send || op.kind == OpKind::recv; }

}  // namespace

Draft thaw(const Plan& plan) {
  Draft draft;
  draft.frame_ = renumbered_frame(plan, [](OpId id) { return id; });
  draft.entries_.resize(plan.ops.size());
  for (std::size_t i = 0; i < plan.ops.size(); ++i) {
    const OpId id{static_cast<std::uint32_t>(i)};
    Draft::Entry& entry = draft.entries_[i];
    entry.op = plan.ops[i];
    entry.op.after = OpId{};
    entry.op.after_count = 0;
    for (const OpId before : plan.after_of(id)) entry.after.push_back(handle_of(before));
  }
  draft.lanes_.resize(plan.lanes.size());
  for (std::size_t l = 0; l < plan.lanes.size(); ++l)
    for (std::uint32_t k = 0; k < plan.lanes[l].count; ++k)
      draft.lanes_[l].push_back(
          Draft::Handle{static_cast<std::uint32_t>(index(plan.lanes[l].first)) + k});
  return draft;
}

LaneId Draft::add_lane(std::string name, OpKind kind, Rank rank, Rank peer) {
  frame_.lanes.push_back({std::move(name), kind, rank, peer, OpId{}, 0});
  lanes_.emplace_back();
  return LaneId{static_cast<std::uint32_t>(lanes_.size() - 1)};
}

Draft::Handle Draft::insert(LaneId lane, std::size_t position, Op op) {
  const Handle handle{static_cast<std::uint32_t>(entries_.size())};
  op.after = OpId{};
  op.after_count = 0;
  op.lane = lane;
  entries_.push_back({op, {}, false});
  move(handle, lane, position);
  return handle;
}

void Draft::join(Handle send, Handle recv) {
  op(send).kind = OpKind::send;
  op(recv).kind = OpKind::recv;
  op(send).match = static_cast<std::uint32_t>(recv);
  op(recv).match = static_cast<std::uint32_t>(send);
  op(send).peer = rank_of(recv);
  op(recv).peer = rank_of(send);
}

void Draft::take_off(Handle handle) { std::erase(lanes_[lane_at(handle)], handle); }

void Draft::move(Handle handle, LaneId lane, std::size_t position) {
  take_off(handle);
  std::vector<Handle>& to = lanes_[index(lane)];
  LONGHAUL_ASSERT(position <= to.size(), "place {} of a lane of {}", position, to.size());
  to.insert(to.begin() + static_cast<std::ptrdiff_t>(position), handle);
  op(handle).lane = lane;
}

void Draft::remove(Handle handle) {
  const Op& gone = op(handle);
  LONGHAUL_ASSERT(gone.kind != OpKind::collective && !is_step(gone),
                  "op {} is part of a collective", static_cast<std::uint32_t>(handle));
  std::vector<Handle> both{handle};
  if (is_side(gone)) both.push_back(Handle{gone.match});
  for (const Handle each : both) {
    take_off(each);
    at(each).removed = true;
    for (Resource& resource : frame_.resources) std::erase(resource.order, id_of(each));
  }
}

void Draft::add_after(Handle handle, Handle before) {
  std::vector<Handle>& after = at(handle).after;
  if (std::ranges::find(after, before) == after.end()) after.push_back(before);
}

void Draft::remove_after(Handle handle, Handle before) { std::erase(at(handle).after, before); }

void Draft::set_order(ResourceId resource, std::span<const Handle> order) {
  std::vector<OpId>& ids = frame_.resources[index(resource)].order;
  ids.clear();
  for (const Handle each : order) ids.push_back(id_of(each));
}

/// Gives out the ids of a draft's ops.
class Freezing {
public:
  explicit Freezing(const Draft& draft) : draft_{draft}, ids_(draft.entries_.size(), kNone<OpId>) {
    // A rank's lanes lie together, in the order in which ranks come first.
    std::vector<std::size_t> rank_place(draft.frame_.ranks.size(), draft.lanes_.size());
    for (std::size_t l = 0; l < draft.lanes_.size(); ++l) {
      std::size_t& place = rank_place[index(draft.frame_.lanes[l].rank)];
      place = std::min(place, l);
      order_.push_back(l);
    }
    std::ranges::stable_sort(
        order_, {}, [&](std::size_t l) { return rank_place[index(draft.frame_.lanes[l].rank)]; });
    std::uint32_t next = 0;
    for (const std::size_t l : order_)
      for (const Draft::Handle each : draft.lanes_[l])
        ids_[static_cast<std::size_t>(each)] = OpId{next++};
    count_ = next;
  }

  [[nodiscard]] Plan run() {
    Plan out = renumbered_frame(draft_.frame_, [&](OpId id) { return new_id(handle_of(id)); });
    out.ops.reserve(count_);
    for (std::size_t l = 0; l < order_.size(); ++l) {
      const std::vector<Draft::Handle>& from = draft_.lanes_[order_[l]];
      out.lanes[l] = draft_.frame_.lanes[order_[l]];
      out.lanes[l].first = OpId{static_cast<std::uint32_t>(out.ops.size())};
      out.lanes[l].count = static_cast<std::uint32_t>(from.size());
      for (const Draft::Handle each : from) add(each, l, out);
    }
    count_holders(out);
    return out;
  }

private:
  /// kNone: it was removed.
  [[nodiscard]] OpId new_id(Draft::Handle handle) const {
    return ids_[static_cast<std::size_t>(handle)];
  }

  void add(Draft::Handle handle, std::size_t lane, Plan& out) {
    Op op = draft_.op(handle);
    op.lane = LaneId{static_cast<std::uint32_t>(lane)};
    if (is_side(op)) {
      const Draft::Handle other{op.match};
      if (static_cast<std::size_t>(other) >= draft_.entries_.size() || draft_.at(other).removed ||
          draft_.op(other).match != static_cast<std::uint32_t>(handle))
        fail("{} of {} has no other side (a message has two). Join them in the draft.",
             to_text(op.block()), draft_.frame_.schedule);
      op.match = static_cast<std::uint32_t>(index(new_id(other)));
    }
    std::vector<Draft::Handle> waits;
    add_waits(handle, waits);
    for (const Draft::Handle before : waits) {
      if (draft_.rank_of(before) != draft_.rank_of(handle))
        fail("{} of {} waits for an op of another rank (messages go between ranks). Insert one.",
             to_text(op.block()), draft_.frame_.schedule);
      out.add_after(op, new_id(before));
    }
    out.ops.push_back(op);
  }

  /// What an op waits for; instead of an op that was removed, what that one waited for.
  void add_waits(Draft::Handle handle, std::vector<Draft::Handle>& waits) const {
    for (const Draft::Handle before : draft_.after(handle)) {
      if (draft_.at(before).removed)
        add_waits(before, waits);
      else if (std::ranges::find(waits, before) == waits.end())
        waits.push_back(before);
    }
  }

  /// A resource that was private to a lane is none any more where another lane holds it, or where
  /// an op of its lane holds something else.
  static void count_holders(Plan& plan) {
    std::vector<LaneId> holders(plan.resources.size(), kNone<LaneId>);
    std::vector<ResourceSetId> set_of_lane(plan.lanes.size(), kNone<ResourceSetId>);
    for (std::size_t i = 0; i < plan.ops.size(); ++i) {
      const Op& op = plan.ops[i];
      if (op.kind == OpKind::recv) continue;  // its send holds for both
      ResourceSetId& of_lane = set_of_lane[index(op.lane)];
      if (of_lane == kNone<ResourceSetId>) of_lane = op.resources;
      for (const ResourceId id : plan.resources_of(OpId{static_cast<std::uint32_t>(i)})) {
        LaneId& holder = holders[index(id)];
        if (holder == kNone<LaneId>) holder = op.lane;
        const bool private_still = holder == op.lane && of_lane == op.resources;
        std::uint32_t& lanes = plan.resources[index(id)].lanes;
        if (!private_still) lanes = std::max(lanes, 2U);
      }
    }
  }

  const Draft& draft_;
  std::vector<OpId> ids_;           ///< by handle
  std::vector<std::size_t> order_;  ///< of lanes
  std::size_t count_ = 0;
};

Plan freeze(const Draft& draft) { return Freezing{draft}.run(); }

}  // namespace longhaul::plan
