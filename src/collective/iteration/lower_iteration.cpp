#include "collective/iteration/lower_iteration.hpp"

#include <algorithm>
#include <map>
#include <utility>

#include "collective/iteration/iteration_of.hpp"
#include "plan/lowering/lanes.hpp"
#include "plan/lowering/step_lowering.hpp"
#include "plan/rewrite/renumber.hpp"

namespace longhaul::collective {
namespace {

/// What all ranks of a stage have in common: where operations and blocks stand in its compute
/// lanes.
struct StageLayout {
  IndexedVector<OperationId, std::uint32_t> positions;
  /// By position of the base lane: the place in `order` after which what leaves with that
  /// operator's block leaves.
  std::vector<std::uint32_t> leaves;
  std::map<std::uint32_t, std::vector<CommunicationId>> completed_by;  ///< by block
  std::vector<std::vector<CommunicationId>> waits, blocked;            ///< by place in `order`
  std::vector<std::vector<std::vector<Rank>>> groups;                  ///< by Members
  /// By communication and group: index into Plan::stepped.
  IndexedVector<CommunicationId, std::vector<std::size_t>> stepped;
  IndexedVector<CommunicationId, std::uint32_t> issued;  ///< place in `issue`
};

class IterationLowering {
public:
  explicit IterationLowering(const IterationPlan& plan)
      : iteration_{plan}, base_{*plan.base}, scenario_{*plan.scenario} {
    out_ = plan::renumbered_frame(base_, [](OpId id) { return id; });
    out_.lanes.clear();
  }

  Result<LoweredIteration> run() {
    plan::Network network = plan::Network::extending(scenario_, out_);
    plan::StepLowering steps{out_, network, plan::StepLowering::Gates::both_sides};
    steps_ = &steps;
    for (const DeviceId stage : iteration_.stages.ids()) lay_out_stage(stage);
    for (const DeviceId stage : iteration_.stages.ids())
      if (auto why = add_communications(stage)) return *std::move(why);
    lay_out_lanes();
    for (std::size_t lane = 0; lane < base_.lanes.size(); ++lane) {
      if (base_.lanes[lane].kind == OpKind::compute)
        fill_operations(base_.lanes[lane].rank);
      else
        fill_messages(lane);
    }
    for (const DeviceId stage : iteration_.stages.ids()) gate_stage(stage);
    steps.fill();
    if (network.missing_link()) return *network.missing_link();
    made_.plan = std::move(out_);
    return std::move(made_);
  }

private:
  [[nodiscard]] const StageWork& work_of(Rank rank) const {
    return iteration_.stages[base_.ranks[index(rank)].device];
  }
  [[nodiscard]] const StageLayout& layout_of(Rank rank) const {
    return layouts_[base_.ranks[index(rank)].device];
  }
  [[nodiscard]] bool trains(Rank rank) const {
    return base_.ranks[index(rank)].role == RankRole::training;
  }

  void lay_out_stage(DeviceId stage) {
    const StageWork& work = iteration_.stages[stage];
    StageLayout layout;
    layout.positions = work.positions();
    layout.waits.resize(work.order.size());
    layout.blocked.resize(work.order.size());
    find_leaving(work, layout);
    layout.issued.resize(work.communications.count());
    for (std::uint32_t i = 0; i < work.issue.size(); ++i) layout.issued[work.issue[i]] = i;
    for (const CommunicationId id : work.communications.ids()) {
      const Communication& each = work.communications[id];
      for (const OperationId operation : each.needed_by)
        layout.waits[layout.positions[operation]].push_back(id);
      for (const OperationId operation : each.before)
        layout.blocked[layout.positions[operation]].push_back(id);
      if (each.completes >= 0)
        layout.completed_by[static_cast<std::uint32_t>(each.completes)].push_back(id);
    }
    for (const Members members :
         {Members::tensor, Members::shard, Members::copies, Members::replicas, Members::node})
      layout.groups.push_back(groups_of(scenario_, stage, members));
    layouts_.push_back(std::move(layout));
  }

  /// A block's messages leave after its last operation, or its last dgrad.
  static void find_leaving(const StageWork& work, StageLayout& layout) {
    std::map<std::uint32_t, std::uint32_t> last;  // by block
    std::uint32_t operators = 0;
    for (std::uint32_t place = 0; place < work.order.size(); ++place) {
      const Operation& operation = work.operations[work.order[place]];
      operators = std::max(operators, operation.position + 1);
      const bool leaves = work.leaving == Leaving::with_block || operation.work != BlockKind::W;
      if (leaves || !last.contains(operation.block)) last[operation.block] = place;
    }
    layout.leaves.resize(operators);
    for (const OperationId id : work.order) {
      const Operation& operation = work.operations[id];
      layout.leaves[operation.position] = last.at(operation.block);
    }
  }

  [[nodiscard]] std::optional<Refusal> add_communications(DeviceId stage) {
    const StageWork& work = iteration_.stages[stage];
    StageLayout& layout = layouts_[stage];
    layout.stepped.resize(work.communications.count());
    for (const CommunicationId id : work.issue) {
      const Communication& each = work.communications[id];
      const auto& groups = layout.groups[static_cast<std::size_t>(each.members)];
      for (std::size_t g = 0; g < groups.size(); ++g) {
        plan::Collective collective{each.kind,      groups[g], size_in_group(each, scenario_, g),
                                    each.algorithm, each.mesh, each.pieces};
        if (auto why = plan::why_no_steps(collective)) return why;
        layout.stepped[id].push_back(out_.stepped.size());
        steps_->add(collective, each.chunk, each.queue);
        made_.communication_of.push_back({stage, id, each.traffic});
        messages_ += out_.stepped.back().steps->messages.size();
        if (messages_ > kMostMessagesOfIteration)
          return refused(
              "the collectives of an iteration have more than {} messages (a simulation would take "
              "minutes). Take larger units, or fewer ranks or microbatches.",
              kMostMessagesOfIteration);
      }
    }
    return std::nullopt;
  }

  void lay_out_lanes() {
    out_.ops.reserve(base_.ops.size() + 2 * messages_);
    made_.first_operation.resize(base_.ranks.size());
    std::size_t lane = 0;
    for (const Rank rank : ids<Rank>(static_cast<int>(base_.ranks.size()))) {
      for (; lane < base_.lanes.size() && base_.lanes[lane].rank == rank; ++lane) {
        const Lane& own = base_.lanes[lane];
        const bool operations = own.kind == OpKind::compute && trains(rank);
        const LaneId added = plan::add_lane(out_, own.name, own.kind, rank, own.peer,
                                            operations ? work_of(rank).order.size() : own.count);
        if (operations) made_.first_operation[index(rank)] = out_.lanes[index(added)].first;
        lane_of_.push_back(added);
      }
      steps_->lay_out(rank);
    }
  }

  /// The op of the base plan that is no operation: a side of a message.
  [[nodiscard]] OpId message(OpId id) const {
    const LaneId lane = base_.op(id).lane;
    return plan::op_at(out_, lane_of_[index(lane)], index(id) - index(base_.lane_of(id).first));
  }

  /// What waits for an op of the base plan waits for.
  void add_base_wait(Op& op, OpId before) {
    if (base_.op(before).kind != OpKind::compute) return out_.add_after(op, message(before));
    const Rank rank = base_.rank_of(before);
    const StageLayout& layout = layout_of(rank);
    const auto position =
        static_cast<std::uint32_t>(index(before) - index(base_.lane_of(before).first));
    const std::uint32_t place = layout.leaves[position];
    out_.add_after(op, made_.op_of(rank, place));
    const Operation& operation = work_of(rank).operations[work_of(rank).order[place]];
    if (const auto done = layout.completed_by.find(operation.block);
        done != layout.completed_by.end())
      for (const CommunicationId id : done->second)
        for (const OpId arrival : arrivals(rank, id)) out_.add_after(op, arrival);
  }

  void fill_messages(std::size_t lane) {
    const Lane& own = base_.lanes[lane];
    for (std::uint32_t i = 0; i < own.count; ++i) {
      const OpId id{static_cast<std::uint32_t>(index(own.first)) + i};
      Op& op = out_.ops[index(message(id))];
      const LaneId added = op.lane;
      op = base_.op(id);
      op.lane = added;
      op.after_count = 0;
      op.after = OpId{};
      op.match = static_cast<std::uint32_t>(index(message(OpId{base_.op(id).match})));
      for (const OpId before : base_.after_of(id)) add_base_wait(op, before);
    }
  }

  void fill_operations(Rank rank) {
    if (!trains(rank)) return;
    const StageWork& work = work_of(rank);
    const StageLayout& layout = layout_of(rank);
    const Lane& base_lane = compute_lane(base_, rank);
    for (std::uint32_t place = 0; place < work.order.size(); ++place) {
      const Operation& operation = work.operations[work.order[place]];
      Op& op = out_.ops[index(made_.op_of(rank, place))];
      const LaneId added = op.lane;
      op = base_.ops[index(base_lane.first) + operation.position];
      op.lane = added;
      op.after_count = 0;
      op.after = OpId{};
      op.duration = operation.duration;
      const bool counts =
          op.size > Bytes{} ? operation.piece == 0 : operation.piece + 1 == operation.pieces;
      if (!counts) op.size = Bytes{};
      if (operation.input >= 0)
        for (const OpId before : inputs(base_lane, operation.input))
          out_.add_after(op, message(before));
      for (const CommunicationId id : layout.waits[place])
        for (const OpId arrival : arrivals(rank, id)) out_.add_after(op, arrival);
      for (const CommunicationId id : layout.blocked[place])
        for (const OpId last : steps_->last_ops(stepped_of(rank, id), rank))
          out_.add_after(op, last);
    }
  }

  /// The receives that an operator of a base lane waits for.
  [[nodiscard]] std::span<const OpId> inputs(const Lane& lane, std::int32_t position) const {
    return base_.after_of(
        OpId{static_cast<std::uint32_t>(index(lane.first)) + static_cast<std::uint32_t>(position)});
  }

  [[nodiscard]] std::size_t stepped_of(Rank rank, CommunicationId id) const {
    const StageLayout& layout = layout_of(rank);
    const Members members = work_of(rank).communications[id].members;
    const auto& groups = layout.groups[static_cast<std::size_t>(members)];
    const auto mine = std::ranges::find_if(
        groups, [&](const auto& group) { return std::ranges::binary_search(group, rank); });
    return layout.stepped[id][to_size(mine - groups.begin())];
  }
  [[nodiscard]] std::vector<OpId> arrivals(Rank rank, CommunicationId id) const {
    return steps_->arrivals_at(stepped_of(rank, id), rank);
  }

  void gate_stage(DeviceId stage) {
    for (const auto& group : layouts_[stage].groups[static_cast<std::size_t>(Members::tensor)])
      for (const Rank rank : group)
        for (const CommunicationId id : iteration_.stages[stage].communications.ids())
          gate(rank, id);
  }

  /// Of several operations the last in the lane says when the others have ended.
  void gate(Rank rank, CommunicationId id) {
    const StageLayout& layout = layout_of(rank);
    const Communication& own = work_of(rank).communications[id];
    const Lane& base_lane = compute_lane(base_, rank);
    const std::size_t stepped = stepped_of(rank, id);
    std::int64_t last = -1;
    for (const std::vector<OperationId>* operations : {&own.needs, &own.after})
      for (const OperationId operation : *operations)
        last = std::max<std::int64_t>(last, layout.positions[operation]);
    const auto add = [&](OpId before) { steps_->gate(stepped, rank, before); };
    const auto add_inputs = [&](std::int32_t position) {
      if (position >= 0)
        for (const OpId before : inputs(base_lane, position)) add(message(before));
    };
    for (const CommunicationId before : own.follows)
      for (const OpId arrival : arrivals(rank, before)) add(arrival);
    add_inputs(own.input);
    if (own.at_start_of != kNone<OperationId>) {
      const std::uint32_t place = layout.positions[own.at_start_of];
      last = std::max<std::int64_t>(last, std::int64_t{place} - 1);
      add_inputs(work_of(rank).operations[own.at_start_of].input);
      for (const CommunicationId awaited : layout.waits[place])
        if (layout.issued[awaited] < layout.issued[id])
          for (const OpId arrival : arrivals(rank, awaited)) add(arrival);
    }
    if (last >= 0) add(made_.op_of(rank, static_cast<std::uint32_t>(last)));
  }

  const IterationPlan& iteration_;
  const Plan& base_;
  const Scenario& scenario_;
  Plan out_;
  plan::StepLowering* steps_ = nullptr;
  IndexedVector<DeviceId, StageLayout> layouts_;
  std::vector<LaneId> lane_of_;  ///< by lane of the base plan
  LoweredIteration made_;
  std::size_t messages_ = 0;
};

}  // namespace

Result<LoweredIteration> lower_iteration(const IterationPlan& plan) {
  return IterationLowering{plan}.run();
}

}  // namespace longhaul::collective
