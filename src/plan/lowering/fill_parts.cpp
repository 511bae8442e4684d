// What the tasks and messages of parts wait for.
#include <algorithm>

#include "base/index.hpp"
#include "plan/lowering/lanes.hpp"
#include "plan/lowering/part_lowering.hpp"

namespace longhaul::plan {
namespace {

bool carries_messages(ResourceKind kind) {
  return kind != ResourceKind::device && kind != ResourceKind::collective &&
         kind != ResourceKind::workers && kind != ResourceKind::copy_engine;
}

}  // namespace

void PartLowering::fill(const std::vector<LaneId>& compute_lane_of_rank) {
  compute_ = compute_lane_of_rank;
  for (const Group& group : groups_) {
    own_set_.assign(group.parts.size(), {});
    for (std::size_t p = 0; p < group.parts.size(); ++p) fill_part(group, p);
  }
  std::ranges::sort(plan_.extras.tasks, {}, &OpTask::op);
  if (groups_.empty()) return;
  for (Resource& resource : plan_.resources)
    if (carries_messages(resource.kind)) resource.serve = scenario_.train.serve;
}

OpId PartLowering::block_at(const Group& group, std::size_t m, std::int32_t position) const {
  return op_at(plan_, compute_[index(group.members[m])], at(position));
}

void PartLowering::fill_part(const Group& group, std::size_t p) {
  const Part& part = group.parts[p];
  for (std::size_t m = 0; m < group.members.size(); ++m)
    own_set_[p].push_back(fill_own_set(group, p, m));
  for (const SiteChoice& choice : part.steps.choices) {
    Op& op = plan_.ops[index(part.members[at(choice.at)].choices[at(choice.round)])];
    plan_.add_after(op, set_of(group, p, to_size(choice.at), choice.round));
    for (const std::int32_t input : choice.inputs) plan_.add_after(op, part.receives[at(input)]);
  }
  for (int round = 1; round < rounds_; ++round)
    for (std::size_t m = 0; m < group.members.size(); ++m)
      if (group.leads(m))
        wait_for_round(group, p, m, round - 1, part.members[m].answers[to_size(round)]);
  for (std::size_t i = 0; i < part.sends.size(); ++i) fill_message(group, p, i);
  for (std::size_t m = 0; m < group.members.size(); ++m) {
    fill_update(group, p, m);
    fill_forward(group, p, m);
  }
}

void PartLowering::wait_for_round(const Group& group, std::size_t p, std::size_t m, int round,
                                  OpId sum) {
  const Part& part = group.parts[p];
  Op& op = plan_.ops[index(sum)];
  const OpId choice = part.members[m].choices[to_size(round)];
  plan_.add_after(op, choice == kNone<OpId> ? set_of(group, p, m, round) : choice);
  for (std::size_t i = 0; i < part.receives.size(); ++i) {
    const SetMessage& message = part.steps.messages[i];
    if (message.round == round && message.leg == NodeLeg::none &&
        message.to == static_cast<std::int32_t>(m))
      plan_.add_after(op, part.receives[i]);
  }
}

OpId PartLowering::fill_own_set(const Group& group, std::size_t p, std::size_t m) {
  const Part& part = group.parts[p];
  const MemberOps& ops = part.members[m];
  OpId before = block_at(group, m, group.rows[m][p].last_gradient);
  for (const OpId task : {ops.copy_out, ops.gather, ops.compress}) {
    if (task == kNone<OpId>) continue;
    plan_.add_after(plan_.ops[index(task)], before);
    for (std::size_t i = 0; task == ops.gather && i < part.receives.size(); ++i)
      if (part.steps.messages[i].leg == NodeLeg::gradient &&
          part.steps.messages[i].to == static_cast<std::int32_t>(m))
        plan_.add_after(plan_.ops[index(task)], part.receives[i]);
    before = task;
  }
  return before;
}

void PartLowering::fill_message(const Group& group, std::size_t p, std::size_t message) {
  const Part& part = group.parts[p];
  const SetMessage& set = part.steps.messages[message];
  const OpId send = part.sends[message];
  const TrainedPart& trained = group.rows[at(set.from)][p];
  // The hop in the place of a microbatch: what tells messages of a part between two ranks apart.
  join_sides(plan_, send, part.receives[message],
             {BlockKind::B, trained.part, trained.parts, trained.chunk, MicrobatchId{set.hop}},
             set.size, route_of_.at(plan_.op(send).lane));
  const auto before = [&] {
    if (set.leg == NodeLeg::weights) return part.members[at(set.from)].optimize;
    if (set.brought_by >= 0) return part.receives[at(set.brought_by)];
    return set.of_site ? part.members[at(set.from)].choices[at(set.round)]
                       : set_of(group, p, to_size(set.from), set.round);
  };
  plan_.add_after(plan_.ops[index(send)], before());
  plan_.extras.priorities.push_back({send, part.number + 1});
}

OpId PartLowering::fill_step(const Group& group, std::size_t p, std::size_t m) {
  const MemberOps& ops = group.parts[p].members[m];
  const OpId first = ops.merge == kNone<OpId> ? ops.optimize : ops.merge;
  wait_for_round(group, p, m, rounds_ - 1, first);
  if (first != ops.optimize) plan_.add_after(plan_.ops[index(ops.optimize)], first);
  return ops.optimize;
}

void PartLowering::fill_update(const Group& group, std::size_t p, std::size_t m) {
  const Part& part = group.parts[p];
  const MemberOps& ops = part.members[m];
  const auto handed = std::ranges::find_if(part.steps.messages, [&](const SetMessage& each) {
    return each.leg == NodeLeg::weights && each.to == static_cast<std::int32_t>(m);
  });
  const OpId made = group.leads(m) ? fill_step(group, p, m)
                                   : part.receives[to_size(handed - part.steps.messages.begin())];
  if (ops.copy_in == kNone<OpId>) return;
  Op& copy_in = plan_.ops[index(ops.copy_in)];
  if (!keeps_one_buffer()) return plan_.add_after(copy_in, made);
  // Where weights are in use from F to B, those of `staleness` iterations ago come after this B.
  plan_.add_after(copy_in, block_at(group, m, group.rows[m][p].last_gradient));
  plan_.extras.far.push_back({ops.copy_in, made, scenario_.train.staleness});
}

void PartLowering::fill_forward(const Group& group, std::size_t p, std::size_t m) {
  const MemberOps& ops = group.parts[p].members[m];
  const OpId forward = block_at(group, m, group.rows[m][p].first_forward);
  const OpId update = ops.copy_in == kNone<OpId> ? ops.optimize : ops.copy_in;
  const int least = group.rows[m][p].iterations_back;
  const int back = least + (keeps_one_buffer() ? 0 : scenario_.train.staleness);
  plan_.extras.far.push_back({forward, update, back, Strength::strong});
  plan_.extras.far.push_back({forward, update, least, Strength::weak});
}

}  // namespace longhaul::plan
