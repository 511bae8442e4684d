#include "engine/events/verify_events.hpp"

#include <algorithm>

namespace longhaul::engine {

Checks verify_events(const Plan& plan, const EventFacts& facts, Rank rank,
                     const std::vector<OpInstance>& ops) {
  Checks checks;
  const std::uint32_t first = ops_of_rank(plan, rank).first;
  const auto of = [&](OpId id) -> const OpInstance& { return ops[index(id) - first]; };
  const auto ran = [](const OpInstance& op) { return op.stage == OpInstance::Stage::ended; };
  for (const Lane& lane : plan.lanes) {
    if (lane.rank != rank || lane.count == 0) continue;
    const OpInstance* const begin = &of(lane.first);
    const bool in_order = facts.ways[index(plan.op(lane.first).lane)] == EventFacts::Way::in_turn &&
                          std::all_of(begin, begin + lane.count, ran);
    for (const OpInstance* op = begin; op != begin + lane.count; ++op) {
      if (!ran(*op)) continue;
      bool right = op->time.start <= op->time.end;
      if (in_order && op != begin) right = right && op->time.start >= (op - 1)->time.start;
      for (const OpId before : plan.after_of(op->op))
        right = right && ran(of(before)) && of(before).time.end <= op->time.start;
      if (!right)
        ++checks.out_of_order;
      else if (lane.kind == OpKind::compute)
        ++checks.blocks;
    }
  }
  return checks;
}

}  // namespace longhaul::engine
