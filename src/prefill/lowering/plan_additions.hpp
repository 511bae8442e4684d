#pragma once

#include <map>
#include <optional>
#include <string>
#include <tuple>
#include <vector>

#include "plan/plan.hpp"
#include "plan/rewrite/draft.hpp"

namespace longhaul::prefill {

/// Lanes and ops that are added to a plan of training, whose own ops keep their order.
class PlanAdditions {
public:
  using Handle = plan::Draft::Handle;

  /// `training` lives as long. No collective is one op of several members that is added.
  explicit PlanAdditions(const Plan& training);

  /// A resource, of one holder at a time unless said, and the set of it alone. Before any op.
  [[nodiscard]] ResourceSetId add_resource(std::string name, ResourceKind kind, int capacity = 1);
  /// The interface inside its datacenter of the node that the rank lies on, alone: training's
  /// messages hold it, too. Where they hold none the rank gets one of its own. Before any op.
  [[nodiscard]] ResourceSetId interface_of(Rank rank);
  /// The decode rank of the datacenter in which that rank lies. Throws Error where it has none.
  [[nodiscard]] Rank decode_rank_of(Rank gpu) const;
  /// Of messages that hold no link.
  [[nodiscard]] ResourceSetId no_resources() const { return nothing_; }
  /// What the blocks of a rank hold. Precondition: it has blocks.
  [[nodiscard]] ResourceSetId device_of(Rank rank) const;
  /// The lane of that rank's blocks; kNone<LaneId>: it has none.
  [[nodiscard]] LaneId blocks_of(Rank rank) const { return compute_[index(rank)]; }

  /// The lane "NAME", "NAME>PEER" of sends or "NAME<PEER" of receives, made when it is asked first.
  [[nodiscard]] LaneId lane(const std::string& name, OpKind kind, Rank rank,
                            Rank peer = kNone<Rank>);
  Handle append(LaneId lane, const Op& op);
  struct MessageTakes {
    Duration latency{}, transfer{};
    std::optional<ResourceSetId> holds{};  ///< nullopt: nothing
  };
  /// Both sides of a message.
  std::pair<Handle, Handle> append_message(const std::string& name, Rank from, Rank to, Op op,
                                           const MessageTakes& takes);
  void after(Handle op, Handle before) { draft_.add_after(op, before); }
  [[nodiscard]] static Handle of_training(OpId op) {
    return Handle{static_cast<std::uint32_t>(index(op))};
  }

  /// Call once, last.
  [[nodiscard]] Plan make();
  /// After make(): ids in its plan.
  [[nodiscard]] OpId id(Handle handle) const;
  [[nodiscard]] LaneId id(LaneId lane) const {
    return LaneId{static_cast<std::uint32_t>(lane_places_[index(lane)])};
  }
  /// By op of the plan of training.
  [[nodiscard]] std::vector<OpId> training_ids() const;

private:
  void open();
  [[nodiscard]] ResourceSetId alone(ResourceId resource);
  [[nodiscard]] std::vector<OpId> noise_ids(std::size_t ops) const;
  void place_lanes();

  const Plan& training_;
  Plan base_;  ///< of training, with the resources that are added
  ResourceSetId nothing_{};
  bool is_open_ = false;
  plan::Draft draft_;
  std::vector<LaneId> compute_;           ///< by rank: of its blocks
  std::vector<std::uint32_t> places_;     ///< by handle, of ops that were added: on their lanes
  std::vector<std::size_t> lane_places_;  ///< by lane of the draft: in the plan
  std::vector<std::uint32_t> first_;      ///< by lane of the plan: its first op
  std::map<std::tuple<std::string, OpKind, Rank, Rank>, LaneId> lanes_;
};

}  // namespace longhaul::prefill
