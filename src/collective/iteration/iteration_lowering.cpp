#include "collective/iteration/iteration_lowering.hpp"

#include <algorithm>

#include "plan/lowering/lanes.hpp"

namespace longhaul::collective {

namespace {

/// A block's messages leave after its last operation, or its last dgrad.
void find_leaving(const StageWork& work, StageLayout& layout) {
  constexpr std::uint32_t kNowhere = 0xffffffff;
  std::uint32_t operators = 0;
  for (const Operation& operation : work.operations)
    operators = std::max(operators, std::max(operation.position, operation.block) + 1);
  std::vector<std::uint32_t> last(operators, kNowhere);  // by block
  for (std::uint32_t place = 0; place < work.order.size(); ++place) {
    const Operation& operation = work.operations[work.order[place]];
    const bool leaves = work.leaving == Leaving::with_block || operation.work != BlockKind::W;
    if (leaves || last[operation.block] == kNowhere) last[operation.block] = place;
  }
  layout.leaves.resize(operators);
  for (const OperationId id : work.order) {
    const Operation& operation = work.operations[id];
    layout.leaves[operation.position] = last[operation.block];
  }
}

StageLayout layout_of(const StageWork& work) {
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
  return layout;
}

}  // namespace

IterationLowering::IterationLowering(const IterationPlan& plan, IterationTarget& target,
                                     LoweredIteration& made)
    : iteration_{plan}, base_{*plan.base}, target_{target}, made_{made}, out_{made.plan} {
  for (const DeviceId stage : plan.stages.ids()) layouts_.push_back(layout_of(plan.stages[stage]));
}

std::optional<Refusal> IterationLowering::run() {
  for (const DeviceId stage : iteration_.stages.ids())
    for (const CommunicationId id : iteration_.stages[stage].issue)
      if (auto why = target_.add(stage, id)) return why;
  lay_out_lanes();
  for (std::size_t lane = 0; lane < base_.lanes.size(); ++lane) {
    if (!target_.has(base_.lanes[lane].rank)) continue;
    if (base_.lanes[lane].kind == OpKind::compute)
      fill_operations(lane);
    else
      fill_messages(lane);
  }
  for (const Lane& lane : base_.lanes)
    if (lane.kind == OpKind::compute && trains(lane.rank) && target_.has(lane.rank))
      for (const CommunicationId id : work_of(lane.rank).communications.ids()) gate(lane, id);
  target_.fill();
  return std::nullopt;
}

void IterationLowering::lay_out_lanes() {
  made_.first_operation.resize(base_.ranks.size());
  lane_of_.resize(base_.lanes.size());
  resources_of_.resize(base_.lanes.size());
  if (const std::size_t ops = target_.ops_to_lay_out(); ops > 0)
    out_.ops.reserve(ops + base_.ops.size());
  std::size_t lane = 0;
  for (const Rank rank : ids<Rank>(static_cast<int>(base_.ranks.size()))) {
    const bool has = target_.has(rank);
    for (; lane < base_.lanes.size() && base_.lanes[lane].rank == rank; ++lane) {
      if (!has) continue;
      const Lane& own = base_.lanes[lane];
      const bool operations = own.kind == OpKind::compute && trains(rank);
      lane_of_[lane] = plan::add_lane(out_, own.name, own.kind, rank, own.peer,
                                      operations ? work_of(rank).order.size() : own.count);
      resources_of_[lane] = target_.resources(lane);
      if (operations) made_.first_operation[index(rank)] = out_.lanes.back().first;
    }
    if (has) target_.lay_out(rank);
  }
}

/// The op for one of the base plan that is no operation: a side of a message.
OpId IterationLowering::message(OpId id) const {
  const OpId own = target_.standing_for(id);
  const LaneId lane = base_.op(own).lane;
  return plan::op_at(out_, lane_of_[index(lane)], index(own) - index(base_.lane_of(own).first));
}

/// What waits for an op of the base plan waits for.
void IterationLowering::add_base_wait(Op& op, OpId before) {
  if (base_.op(before).kind != OpKind::compute) return out_.add_after(op, message(before));
  const Rank rank = base_.rank_of(before);
  const StageLayout& layout = layout_of_rank(rank);
  const auto position = index(before) - index(base_.lane_of(before).first);
  const std::uint32_t place = layout.leaves[position];
  out_.add_after(op, made_.op_of(rank, place));
  const Operation& operation = work_of(rank).operations[work_of(rank).order[place]];
  if (const auto done = layout.completed_by.find(operation.block);
      done != layout.completed_by.end())
    for (const CommunicationId id : done->second)
      for (const OpId arrival : target_.arrivals(rank, id)) out_.add_after(op, arrival);
}

void IterationLowering::start_op(Op& op, const Op& base, std::size_t base_lane) {
  const LaneId added = op.lane;
  op = base;
  op.lane = added;
  op.after_count = 0;
  op.after = OpId{};
  op.resources = resources_of_[base_lane];
}

void IterationLowering::fill_messages(std::size_t lane) {
  const Lane& own = base_.lanes[lane];
  for (std::uint32_t i = 0; i < own.count; ++i) {
    const OpId id{static_cast<std::uint32_t>(index(own.first)) + i};
    Op& op = out_.ops[index(plan::op_at(out_, lane_of_[lane], i))];
    start_op(op, base_.op(id), lane);
    op.match = static_cast<std::uint32_t>(index(message(OpId{base_.op(id).match})));
    for (const OpId before : base_.after_of(id)) add_base_wait(op, before);
  }
}

void IterationLowering::fill_operations(std::size_t lane) {
  const Lane& base_lane = base_.lanes[lane];
  const Rank rank = base_lane.rank;
  if (!trains(rank)) return;
  const StageWork& work = work_of(rank);
  const StageLayout& layout = layout_of_rank(rank);
  for (std::uint32_t place = 0; place < work.order.size(); ++place) {
    const Operation& operation = work.operations[work.order[place]];
    Op& op = out_.ops[index(made_.op_of(rank, place))];
    start_op(op, base_.ops[index(base_lane.first) + operation.position], lane);
    op.duration = operation.duration;
    const bool counts =
        op.size > Bytes{} ? operation.piece == 0 : operation.piece + 1 == operation.pieces;
    if (!counts) op.size = Bytes{};
    if (operation.input >= 0)
      for (const OpId before : inputs(base_lane, operation.input))
        out_.add_after(op, message(before));
    for (const CommunicationId id : layout.waits[place])
      for (const OpId arrival : target_.arrivals(rank, id)) out_.add_after(op, arrival);
    for (const CommunicationId id : layout.blocked[place])
      for (const OpId last : target_.last_ops(rank, id)) out_.add_after(op, last);
  }
}

/// The receives that an operator of a base lane waits for.
std::span<const OpId> IterationLowering::inputs(const Lane& lane, std::int32_t position) const {
  return base_.after_of(
      OpId{static_cast<std::uint32_t>(index(lane.first)) + static_cast<std::uint32_t>(position)});
}

/// Of several operations the last in the lane says when the others have ended.
void IterationLowering::gate(const Lane& base_lane, CommunicationId id) {
  const Rank rank = base_lane.rank;
  const StageLayout& layout = layout_of_rank(rank);
  const Communication& own = work_of(rank).communications[id];
  std::int64_t last = -1;
  for (const std::vector<OperationId>* operations : {&own.needs, &own.after})
    for (const OperationId operation : *operations)
      last = std::max<std::int64_t>(last, layout.positions[operation]);
  const auto add = [&](OpId before) { target_.gate(rank, id, before); };
  const auto add_inputs = [&](std::int32_t position) {
    if (position >= 0)
      for (const OpId before : inputs(base_lane, position)) add(message(before));
  };
  for (const CommunicationId before : own.follows)
    for (const OpId arrival : target_.arrivals(rank, before)) add(arrival);
  add_inputs(own.input);
  if (own.at_start_of != kNone<OperationId>) {
    const std::uint32_t place = layout.positions[own.at_start_of];
    last = std::max<std::int64_t>(last, std::int64_t{place} - 1);
    add_inputs(work_of(rank).operations[own.at_start_of].input);
    for (const CommunicationId awaited : layout.waits[place])
      if (layout.issued[awaited] < layout.issued[id])
        for (const OpId arrival : target_.arrivals(rank, awaited)) add(arrival);
  }
  if (last >= 0) add(made_.op_of(rank, static_cast<std::uint32_t>(last)));
}

}  // namespace longhaul::collective
