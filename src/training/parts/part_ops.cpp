#include "training/parts/part_ops.hpp"

#include <algorithm>
#include <map>
#include <set>
#include <string_view>

#include "base/error.hpp"
#include "base/index.hpp"
#include "plan/lowering/lanes.hpp"

namespace longhaul::training {
namespace {

PartTask task_of_kind(TaskKind kind, std::string_view lane) {
  switch (kind) {
    case TaskKind::copy_out: return PartTask::copy_out;
    case TaskKind::host_gather: return PartTask::gather;
    case TaskKind::compress:
      if (lane == "host:answer") return PartTask::answer;
      return lane == "host:site" ? PartTask::choose : PartTask::compress;
    case TaskKind::merge: return PartTask::merge;
    case TaskKind::copy_in: return PartTask::copy_in;
    default: return PartTask::optimize;
  }
}

}  // namespace

PartOps::PartOps(const Plan& plan, const Schedule& schedule, const Scenario& scenario, Rank self,
                 const plan::PartExchanges& exchanges) {
  const RankInfo& place = plan.ranks[index(self)];
  for (const ReplicaId replica : schedule.replica_ids()) {
    members_.push_back(scenario.rank(replica, place.device, place.tensor));
    site_of_.push_back(scenario.datacenter_of(members_.back()));
  }
  self_ = number(place.replica);
  sites_ = plan::count_sites(site_of_);
  leaders_ = plan::leaders_of_nodes(scenario, members_);
  const OpRange ops = ops_of_rank(plan, self);
  const LaneId compute = plan.op(OpId{ops.first}).lane;
  const Lane& lane = plan.lanes[index(compute)];
  first_block_ = lane.first;
  last_block_ = plan::op_at(plan, compute, lane.count - 1);
  for (const plan::TrainedPart& trained :
       plan::trained_parts(schedule, place.replica, place.device, exchanges)) {
    PlannedPart part{trained,
                     plan::exchanges_of_nodes(
                         scenario.train.compress.exchange, site_of_, leaders_, trained.number,
                         std::vector<plan::SetSizes>(to_size(exchanges.rounds())), Bytes{}),
                     plan::op_at(plan, compute, at(trained.first_forward)),
                     plan::op_at(plan, compute, at(trained.last_gradient)),
                     false,
                     false,
                     false,
                     0,
                     {},
                     true,
                     {}};
    for (int round = 0; round < exchanges.rounds(); ++round)
      part.rounds.push_back(order_sums(part, round));
    add_gradients(part);
    parts_.push_back(std::move(part));
  }
  add_tasks(plan, ops);
  add_messages(plan, ops);
}

/// Sums go in the order of replicas, or of sites, the same on every rank.
PlannedRound PartOps::order_sums(const PlannedPart& part, int round) const {
  PlannedRound planned;
  std::map<int, int> by_member;  // whose set, or whose site's: the message that brings it here
  const auto origin = [&](const plan::SetMessage& message) {
    const plan::SetMessage* from = &message;
    while (from->brought_by >= 0) from = &part.steps.messages[at(from->brought_by)];
    return from;
  };
  const bool chooses = !part.steps.choices.empty();
  for (std::size_t i = 0; i < part.steps.messages.size(); ++i) {
    const plan::SetMessage& message = part.steps.messages[i];
    if (message.to != self_ || message.round != round || message.leg != plan::NodeLeg::none)
      continue;
    const plan::SetMessage* const first = origin(message);
    if (chooses && !first->of_site) continue;  // for the choice
    by_member[chooses ? number(site_of_[at(first->from)]) : first->from] = static_cast<int>(i);
  }
  const auto choice = std::ranges::find_if(part.steps.choices, [&](const plan::SiteChoice& each) {
    return each.at == self_ && each.round == round;
  });
  if (!chooses) by_member[self_] = -1;
  if (choice != part.steps.choices.end()) {
    by_member[number(site_of_[at(self_)])] = -1;
    std::map<int, int> of_choice{{self_, -1}};
    for (const std::int32_t input : choice->inputs)
      of_choice[part.steps.messages[at(input)].from] = input;
    for (const auto& [member, message] : of_choice) planned.choice_of.push_back(message);
  }
  for (const auto& [member, message] : by_member) planned.sum_of.push_back(message);
  return planned;
}

/// Messages of gradients stand in the order of replicas; a leader's own gradient goes before them.
void PartOps::add_gradients(PlannedPart& part) const {
  part.leads = part.steps.leads(self_);
  for (std::size_t i = 0; i < part.steps.messages.size(); ++i)
    if (part.steps.messages[i].leg == plan::NodeLeg::gradient && part.steps.messages[i].to == self_)
      part.gradients.push_back(static_cast<int>(i));
}

void PartOps::add_tasks(const Plan& plan, OpRange ops) {
  for (const plan::OpTask& task : plan.extras.tasks) {
    if (index(task.op) < ops.first || index(task.op) >= ops.first + ops.count) continue;
    const Op& op = plan.op(task.op);
    const auto part = std::ranges::find_if(parts_, [&](const PlannedPart& each) {
      return each.trained.chunk == op.chunk && each.trained.part == op.part;
    });
    if (part == parts_.end()) continue;
    const PartTask kind = task_of_kind(task.kind, plan.lane_of(task.op).name);
    part->has_compress = part->has_compress || kind == PartTask::compress;
    part->has_merge = part->has_merge || kind == PartTask::merge;
    part->has_copy_in = part->has_copy_in || kind == PartTask::copy_in;
    tasks_[task.op] = {kind, to_size(part - parts_.begin()), number(op.microbatch)};
  }
}

/// Of messages, those with a priority carry sets.
void PartOps::add_messages(const Plan& plan, OpRange ops) {
  std::set<OpId> sets;
  for (const plan::OpPriority& each : plan.extras.priorities) sets.insert(each.op);
  for (std::uint32_t i = 0; i < ops.count; ++i) {
    const OpId id{ops.first + i};
    const Op& op = plan.op(id);
    if (op.kind != OpKind::send && op.kind != OpKind::recv) continue;
    const bool sends = op.kind == OpKind::send;
    if (!sets.contains(sends ? id : OpId{op.match})) continue;
    const auto peer = std::ranges::find(members_, op.peer) - members_.begin();
    for (std::size_t p = 0; p < parts_.size(); ++p) {
      PlannedPart& part = parts_[p];
      if (part.trained.chunk != op.chunk || part.trained.part != op.part) continue;
      const auto message =
          std::ranges::find_if(part.steps.messages, [&](const plan::SetMessage& each) {
            return each.hop == number(op.microbatch) && each.from == (sends ? self_ : peer) &&
                   each.to == (sends ? peer : self_);
          });
      LONGHAUL_ASSERT(message != part.steps.messages.end(), "{} carries no set", index(id));
      messages_[id] = {p, static_cast<int>(message - part.steps.messages.begin())};
      if (sends) ++part.sends;
    }
  }
}

}  // namespace longhaul::training
