#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "plan/plan.hpp"

namespace longhaul::plan {

/// A plan that can be rewritten: ops are added, removed and reordered by handles, which stay what
/// they are until freeze() gives out ids again. A pass from plan to plan is
///
///     Draft draft = thaw(plan);
///     draft.move(draft.lane(compute)[3], compute, 2);  // one block earlier
///     const Plan rewritten = freeze(draft);
///
/// In a draft all ids of ops are handles: Op::match of sides of messages, members of collectives,
/// stated orders of resources. Op::after is not used: see after().
class Draft {
public:
  enum class Handle : std::uint32_t {};

  [[nodiscard]] Op& op(Handle handle) { return at(handle).op; }
  [[nodiscard]] const Op& op(Handle handle) const { return at(handle).op; }
  [[nodiscard]] Rank rank_of(Handle handle) const { return frame_.lanes[lane_at(handle)].rank; }
  /// The ops that it waits for, of its own rank.
  [[nodiscard]] std::span<const Handle> after(Handle handle) const { return at(handle).after; }
  /// The ops of a lane, in their order.
  [[nodiscard]] std::span<const Handle> lane(LaneId lane) const { return lanes_[index(lane)]; }
  [[nodiscard]] int lane_count() const { return static_cast<int>(lanes_.size()); }
  /// Lanes, resources and what else a plan has beside its ops. Lane::first and count are not used.
  [[nodiscard]] const Plan& frame() const { return frame_; }

  /// Adds a lane of a rank after its others.
  LaneId add_lane(std::string name, OpKind kind, Rank rank, Rank peer = kNone<Rank>);
  /// Puts an op at that place of a lane: 0 is its begin, as many as it has its end. Both sides of a
  /// message are inserted, then joined. Where resources have a stated order, set_order() says it.
  Handle insert(LaneId lane, std::size_t position, Op op);
  void join(Handle send, Handle recv);
  /// What waited for it waits for what it waited for. Of a message both sides go. Members of a
  /// collective stay.
  void remove(Handle handle);
  void move(Handle handle, LaneId lane, std::size_t position);
  void add_after(Handle handle, Handle before);
  void remove_after(Handle handle, Handle before);
  void set_order(ResourceId resource, std::span<const Handle> order);

private:
  friend Draft thaw(const Plan& plan);
  friend Plan freeze(const Draft& draft);
  friend class Freezing;
  struct Entry {
    Op op;
    std::vector<Handle> after;
    bool removed = false;
  };
  [[nodiscard]] Entry& at(Handle handle) { return entries_[static_cast<std::size_t>(handle)]; }
  [[nodiscard]] const Entry& at(Handle handle) const {
    return entries_[static_cast<std::size_t>(handle)];
  }
  [[nodiscard]] std::size_t lane_at(Handle handle) const { return index(at(handle).op.lane); }
  void take_off(Handle handle);

  Plan frame_;  ///< without ops
  std::vector<Entry> entries_;
  std::vector<std::vector<Handle>> lanes_;
};

/// The plan as a draft; handle i is its op i.
[[nodiscard]] Draft thaw(const Plan& plan);
/// The draft as a plan: freeze(thaw(p)) is p, but for the places of dependencies in Plan::after.
/// Throws Error where an op waits for one of another rank, and where a side of a message has no
/// other one.
[[nodiscard]] Plan freeze(const Draft& draft);

}  // namespace longhaul::plan
