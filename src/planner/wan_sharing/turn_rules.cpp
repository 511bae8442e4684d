#include <algorithm>

#include "base/index.hpp"
#include "planner/wan_sharing/turn_search.hpp"

namespace longhaul::planner {
namespace {

/// The longest way from the end of every block to the end of all, if no link were ever busy.
std::vector<std::int64_t> tails_of(const TurnProblem& problem, const TurnOrders& orders,
                                   const TurnEvaluator& times) {
  std::vector<CellBlockId> after(problem.blocks.size(), -1);
  for (const auto& row : orders.rows) {
    for (std::size_t i = 0; i + 1 < row.size(); ++i) after[at(row[i])] = row[i + 1];
  }
  std::vector<std::int64_t> tails(problem.blocks.size());
  const auto through = [&](CellBlockId id) { return problem.blocks[at(id)].time + tails[at(id)]; };
  for (auto id = times.sequence().rbegin(); id != times.sequence().rend(); ++id) {
    std::int64_t& tail = tails[at(*id)];
    if (after[at(*id)] >= 0) tail = through(after[at(*id)]);
    const CellMessageId output = problem.blocks[at(*id)].output;
    if (output < 0) continue;
    const TurnProblem::OfMessage& message = problem.messages[at(output)];
    tail = std::max(
        tail, message.scatter + message.transfer + message.latency + through(message.consumer));
  }
  return tails;
}

TurnEvaluator::Urgency urgency_of(const TurnProblem& problem, const TurnOrders& orders,
                                  TurnRule rule, const TurnEvaluator& times) {
  TurnEvaluator::Urgency urgency(problem.messages.size());
  if (rule == TurnRule::readiness) return urgency;
  std::vector<std::int64_t> tails;
  if (rule == TurnRule::urgency) tails = tails_of(problem, orders, times);
  for (std::size_t m = 0; m < urgency.size(); ++m) {
    const CellBlockId producer = problem.messages[m].producer;
    const TurnProblem::OfBlock& block = problem.blocks[at(producer)];
    switch (rule) {
      case TurnRule::readiness: break;
      case TurnRule::rank: urgency[m] = block.row / problem.devices; break;
      case TurnRule::microbatch: urgency[m] = block.block.microbatch; break;
      case TurnRule::urgency: urgency[m] = -tails[at(producer)]; break;
    }
  }
  return urgency;
}

}  // namespace

bool take_turns(const TurnProblem& problem, TurnOrders& orders, TurnRule rule,
                TurnEvaluator& times) {
  // Any turns that go through show in which order blocks come.
  if (rule == TurnRule::urgency &&
      !times.take_turns(orders, urgency_of(problem, orders, TurnRule::readiness, times)))
    return false;
  return times.take_turns(orders, urgency_of(problem, orders, rule, times));
}

}  // namespace longhaul::planner
