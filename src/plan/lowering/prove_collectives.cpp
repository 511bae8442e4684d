#include "plan/lowering/prove_collectives.hpp"

#include <algorithm>
#include <map>
#include <set>
#include <vector>

#include "base/index.hpp"
#include "plan/steps/prove.hpp"

namespace longhaul::plan {
namespace {

bool waits_for(const Plan& plan, OpId op, OpId before) {
  const auto after = plan.after_of(op);
  return std::ranges::find(after, before) != after.end();
}

/// The ops of a message are its two sides, and wait for what it waits for.
std::optional<Refusal> why_message_wrong(const Plan& plan, const SteppedCollective& stepped,
                                         std::size_t m) {
  const StepMessage& message = stepped.steps->messages[m];
  const OpId send = stepped.sends[m];
  const OpId receive = stepped.receives[m];
  const std::vector<Rank>& members = stepped.collective.members;
  const Rank from = members[at(message.from)];
  const Rank to = members[at(message.to)];
  const Op& op = plan.op(send);
  if (op.kind != OpKind::send || plan.rank_of(send) != from || op.peer != to ||
      op.match != index(receive) || plan.rank_of(receive) != to || op.size != message.size)
    return refused("{} is not the message of {} bytes from rank {} to rank {} that it stands for.",
                   to_text(plan, send), message.size.count(), index(from), index(to));
  std::vector<OpId> needed;
  for (const std::uint32_t before : stepped.steps->after_of(message))
    needed.push_back(stepped.receives[before]);
  for (const std::int32_t left : {message.left_before, message.left_of_piece})
    if (left >= 0) needed.push_back(stepped.sends[at(left)]);
  for (const OpId before : needed)
    if (!waits_for(plan, send, before))
      return refused("{} does not wait for {}.", to_text(plan, send), to_text(plan, before));
  return std::nullopt;
}

/// Which collective comes before which on some rank, on a lane or since a step waits for it, and by
/// which op.
using NextCollectives = std::map<std::size_t, std::map<std::size_t, OpId>>;

NextCollectives next_collectives(const Plan& plan) {
  NextCollectives next;
  for (const Lane& lane : plan.lanes) {
    for (std::uint32_t i = 1; i < lane.count; ++i) {
      const OpId id{static_cast<std::uint32_t>(index(lane.first)) + i};
      const Op& before = plan.ops[index(id) - 1];
      const Op& op = plan.op(id);
      if (!is_step(before) || !is_step(op) || stepped_of(before) == stepped_of(op)) continue;
      next[stepped_of(before)].try_emplace(stepped_of(op), id);
    }
  }
  for (std::uint32_t i = 0; i < plan.ops.size(); ++i) {
    const Op& op = plan.ops[i];
    if (!is_step(op)) continue;
    for (const OpId id : plan.after_of(OpId{i})) {
      const Op& before = plan.op(id);
      if (is_step(before) && stepped_of(before) != stepped_of(op))
        next[stepped_of(before)].try_emplace(stepped_of(op), OpId{i});
    }
  }
  return next;
}

/// A walk from `collective` back to itself, by the ops that lead on; empty: there is none.
std::vector<OpId> cycle_from(const NextCollectives& next, std::size_t collective) {
  std::map<std::size_t, std::pair<std::size_t, OpId>> came_from;
  std::vector<std::size_t> open{collective};
  while (!open.empty()) {
    const std::size_t at = open.back();
    open.pop_back();
    const auto found = next.find(at);
    if (found == next.end()) continue;
    for (const auto& [to, op] : found->second) {
      if (!came_from.try_emplace(to, at, op).second) continue;
      if (to != collective) {
        open.push_back(to);
        continue;
      }
      std::vector<OpId> cycle;
      for (std::size_t back = collective; cycle.empty() || back != collective;) {
        cycle.push_back(came_from.at(back).second);
        back = came_from.at(back).first;
      }
      std::ranges::reverse(cycle);
      return cycle;
    }
  }
  return {};
}

std::optional<Refusal> why_orders_wrong(const Plan& plan) {
  const NextCollectives next = next_collectives(plan);
  for (const auto& [collective, after] : next) {
    const std::vector<OpId> cycle = cycle_from(next, collective);
    if (cycle.empty()) continue;
    std::string ops;
    for (const OpId op : cycle)
      ops += fmt::format("{}{}", ops.empty() ? "" : "; ", to_text(plan, op));
    return refused("ranks run collectives in orders that wait for each other: {}.", ops);
  }
  return std::nullopt;
}

}  // namespace

std::optional<Refusal> why_collectives_wrong(const Plan& plan) {
  std::set<const CollectiveSteps*> proven;
  for (const SteppedCollective& stepped : plan.stepped) {
    if (proven.insert(stepped.steps.get()).second)
      if (auto why = why_wrong(*stepped.steps)) return why;
    for (std::size_t m = 0; m < stepped.sends.size(); ++m)
      if (auto why = why_message_wrong(plan, stepped, m)) return why;
  }
  return why_orders_wrong(plan);
}

}  // namespace longhaul::plan
