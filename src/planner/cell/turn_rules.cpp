#include "planner/cell/turn_rules.hpp"

#include <algorithm>

namespace longhaul {
namespace {

std::size_t at(std::int32_t id) { return static_cast<std::size_t>(id); }

/// The longest way from the end of every block to the end of all, if no link were ever busy.
std::vector<std::int64_t> tails_of(const CellModel& model, const CellOrders& orders,
                                   const CellTimes& times) {
  std::vector<CellBlockId> behind(model.blocks.size(), -1);
  for (const auto& row : orders.rows) {
    for (std::size_t i = 0; i + 1 < row.size(); ++i) behind[at(row[i])] = row[i + 1];
  }
  std::vector<std::int64_t> tails(model.blocks.size());
  const auto through = [&](CellBlockId id) { return model.blocks[at(id)].time + tails[at(id)]; };
  for (auto id = times.sequence().rbegin(); id != times.sequence().rend(); ++id) {
    std::int64_t& tail = tails[at(*id)];
    if (behind[at(*id)] >= 0) tail = through(behind[at(*id)]);
    const CellMessageId output = model.blocks[at(*id)].output;
    if (output < 0) continue;
    const CellModel::OfMessage& message = model.messages[at(output)];
    tail = std::max(
        tail, message.scatter + message.transfer + message.latency + through(message.consumer));
  }
  return tails;
}

CellTimes::Urgency urgency_of(const CellModel& model, const CellOrders& orders, TurnRule rule,
                              const CellTimes& times) {
  CellTimes::Urgency urgency(model.messages.size());
  if (rule == TurnRule::readiness) return urgency;
  std::vector<std::int64_t> tails;
  if (rule == TurnRule::urgency) tails = tails_of(model, orders, times);
  for (std::size_t m = 0; m < urgency.size(); ++m) {
    const CellBlockId producer = model.messages[m].producer;
    const CellModel::OfBlock& block = model.blocks[at(producer)];
    switch (rule) {
      case TurnRule::readiness: break;
      case TurnRule::rank: urgency[m] = block.row / model.devices; break;
      case TurnRule::microbatch: urgency[m] = block.block.microbatch; break;
      case TurnRule::urgency: urgency[m] = -tails[at(producer)]; break;
    }
  }
  return urgency;
}

}  // namespace

bool take_turns(const CellModel& model, CellOrders& orders, TurnRule rule, CellTimes& times) {
  // Any turns that go through show in which order blocks come.
  if (rule == TurnRule::urgency &&
      !times.take_turns(orders, urgency_of(model, orders, TurnRule::readiness, times)))
    return false;
  return times.take_turns(orders, urgency_of(model, orders, rule, times));
}

}  // namespace longhaul
