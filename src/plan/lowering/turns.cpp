#include "plan/lowering/turns.hpp"

#include <tuple>

#include "base/suggest.hpp"

namespace longhaul::plan {
namespace {

/// (owner, is it a gradient, chunk, microbatch): what a message is, whichever rank sends it.
using TurnKey = std::tuple<int, bool, int, int>;

std::map<TurnKey, Turn> messages_of(const CellMessages& cell, std::size_t channel) {
  std::map<TurnKey, Turn> found;
  for (int owner = 0; owner < cell.replicas.count; ++owner) {
    const Messages& messages = cell.of(owner);
    const auto& range = messages.channels[channel];
    for (std::uint32_t i = range.first; i < range.first + range.count; ++i) {
      const Block& block = messages.all[i].producer;
      found[{owner, is_backward(block.kind), block.chunk, block.microbatch}] = {owner, i};
    }
  }
  return found;
}

}  // namespace

bool is_turns(const LinkOrder& order) { return order.kind == LinkOrderKind::turns; }

TurnTable::TurnTable(const Schedule& schedule) : schedule_{schedule} {
  for (const LinkOrder& order : schedule.link_orders) {
    if (!is_turns(order)) continue;
    if (!by_name_.try_emplace(order.resource, Entry{&order, false}).second && !stated_twice_)
      stated_twice_ = refused(
          "schedule {} states \"{}\" twice (the second order would contradict the first). Join "
          "them.",
          schedule.name, order.resource);
  }
}

Result<std::vector<Turn>> TurnTable::of(const CellMessages& cell, std::size_t channel) {
  const auto& pair = cell.of(0).channels[channel];
  const std::string name = turns_name(cell.cell, pair.from, pair.to);
  const auto at = by_name_.find(name);
  if (at == by_name_.end())
    return refused(
        "schedule {} does not state \"{}\" (replicas {} to {} share the WAN between these two "
        "devices). Add the order of all their messages from device {} to device {}.",
        schedule_.name, name, cell.replicas.first, cell.replicas[cell.replicas.count - 1],
        pair.from, pair.to);
  at->second.used = true;
  auto messages = messages_of(cell, channel);
  std::vector<Turn> turns;
  for (const OrderedMessage& message : at->second.order->messages) {
    const Block& block = message.producer;
    const auto found = messages.find({cell.replicas.local_dp_rank(message.replica),
                                      is_backward(block.kind), block.chunk, block.microbatch});
    if (found == messages.end())
      return refused(
          "schedule {} gives {} of replica {} one of \"{}\" (no such message takes them, or it is "
          "listed twice). Remove it from the order.",
          schedule_.name, to_text(block), message.replica, name);
    turns.push_back(found->second);
    messages.erase(found);
  }
  if (!messages.empty()) {
    const Turn& first = messages.begin()->second;
    return refused(
        "schedule {} leaves {} of {} messages out of \"{}\" (the first: {} of replica {}). List "
        "every message that takes them.",
        schedule_.name, messages.size(), messages.size() + turns.size(), name,
        to_text(cell.of(first.owner).all[first.message].producer), cell.replicas[first.owner]);
  }
  return turns;
}

std::optional<Refusal> TurnTable::not_taken() const {
  std::vector<std::string> used;
  for (const auto& [name, entry] : by_name_)
    if (entry.used) used.push_back(name);
  for (const auto& [name, entry] : by_name_) {
    if (entry.used) continue;
    return refused("schedule {} states \"{}\", which no message takes. {}", schedule_.name, name,
                   suggestion(name, used));
  }
  return std::nullopt;
}

}  // namespace longhaul::plan
