#pragma once

#include <map>
#include <span>
#include <vector>

#include "collective/iteration/lower_iteration.hpp"

namespace longhaul::collective {

/// What all ranks of a stage have in common: where operations and blocks stand in its compute
/// lanes, and which communications they wait for.
struct StageLayout {
  IndexedVector<OperationId, std::uint32_t> positions;
  /// By position of the base lane: the place in `order` after which what leaves with that
  /// operator's block leaves.
  std::vector<std::uint32_t> leaves;
  std::map<std::uint32_t, std::vector<CommunicationId>> completed_by;  ///< by block
  std::vector<std::vector<CommunicationId>> waits, blocked;            ///< by place in `order`
  IndexedVector<CommunicationId, std::uint32_t> issued;                ///< place in `issue`
};

/// Where the ops of an iteration go: all ranks and all messages, or those of some ranks that stand
/// for the others.
class IterationTarget {
public:
  IterationTarget() = default;
  IterationTarget(const IterationTarget&) = delete;
  IterationTarget& operator=(const IterationTarget&) = delete;
  virtual ~IterationTarget() = default;
  /// Is the rank laid out itself?
  [[nodiscard]] virtual bool has(Rank rank) const = 0;
  /// The side of a message of the base plan that stands for this one.
  [[nodiscard]] virtual OpId standing_for(OpId side) const = 0;
  /// What the ops of a lane of the base plan hold.
  [[nodiscard]] virtual ResourceSetId resources(std::size_t base_lane) = 0;
  /// The next communication of a stage, in the order of issue, in all of its groups.
  [[nodiscard]] virtual std::optional<Refusal> add(DeviceId stage, CommunicationId id) = 0;
  /// Ops that all lay_out() add, where that is known; or 0.
  [[nodiscard]] virtual std::size_t ops_to_lay_out() const { return 0; }
  /// Lanes of a rank for its messages of communications.
  virtual void lay_out(Rank rank) = 0;
  // Of a rank's part of a communication, see plan::StepLowering.
  [[nodiscard]] virtual std::vector<OpId> arrivals(Rank rank, CommunicationId id) const = 0;
  [[nodiscard]] virtual std::vector<OpId> last_ops(Rank rank, CommunicationId id) const = 0;
  virtual void gate(Rank rank, CommunicationId id, OpId before) = 0;
  virtual void fill() = 0;
};

/// Lays out the operations and the messages between stages of ranks, and says what waits for what.
class IterationLowering {
public:
  /// Adds to `made`, whose plan has ranks and resources.
  IterationLowering(const IterationPlan& plan, IterationTarget& target, LoweredIteration& made);
  [[nodiscard]] std::optional<Refusal> run();

private:
  [[nodiscard]] const StageWork& work_of(Rank rank) const {
    return iteration_.stages[base_.ranks[index(rank)].device];
  }
  [[nodiscard]] const StageLayout& layout_of_rank(Rank rank) const {
    return layouts_[base_.ranks[index(rank)].device];
  }
  [[nodiscard]] bool trains(Rank rank) const {
    return base_.ranks[index(rank)].role == RankRole::training;
  }
  void lay_out_lanes();
  [[nodiscard]] OpId message(OpId id) const;
  void add_base_wait(Op& op, OpId before);
  void start_op(Op& op, const Op& base, std::size_t base_lane);
  void fill_messages(std::size_t lane);
  void fill_operations(std::size_t lane);
  [[nodiscard]] std::span<const OpId> inputs(const Lane& lane, std::int32_t position) const;
  void gate(const Lane& base_lane, CommunicationId id);

  const IterationPlan& iteration_;
  const Plan& base_;
  IterationTarget& target_;
  LoweredIteration& made_;
  Plan& out_;
  IndexedVector<DeviceId, StageLayout> layouts_;
  std::vector<LaneId> lane_of_;              ///< by lane of the base plan
  std::vector<ResourceSetId> resources_of_;  ///< likewise
};

}  // namespace longhaul::collective
