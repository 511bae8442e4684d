#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/index.hpp"
#include "base/result.hpp"
#include "plan/lowering/messages.hpp"
#include "schedule/schedule.hpp"

namespace longhaul::plan {

/// One message of a DP-cell in the order in which the cell sends over the WAN.
struct Turn {
  int owner = 0;              ///< LocalDPRank of the replica whose message it is
  std::uint32_t message = 0;  ///< index into the owner's Messages::all
};

/// The messages of the replicas of one cell.
struct CellMessages {
  int cell = 0;
  CellReplicas replicas;
  std::span<const Messages> messages;  ///< of each replica, or one that all of them have
  [[nodiscard]] const Messages& of(int local) const {
    return messages[messages.size() == 1 ? 0 : at(local)];
  }
};

/// Looks up the turns that a schedule states: see turns_name().
class TurnTable {
public:
  explicit TurnTable(const Schedule& schedule);

  [[nodiscard]] bool states(int cell, DeviceId from, DeviceId to) const {
    return by_name_.contains(turns_name(cell, from, to));
  }
  /// The turns of all messages of the cell in channel `channel`. Refused where they are
  /// missing, name a message that the cell does not send there, name one twice or leave one out.
  Result<std::vector<Turn>> of(const CellMessages& cell, std::size_t channel);
  /// The turns of one pair of devices that are stated again; nullopt: there are none.
  [[nodiscard]] const std::optional<Refusal>& stated_twice() const { return stated_twice_; }
  /// Turns that no one asked for: no message takes them. nullopt: there are none.
  [[nodiscard]] std::optional<Refusal> not_taken() const;

private:
  struct Entry {
    const LinkOrder* order = nullptr;
    bool used = false;
  };
  const Schedule& schedule_;
  std::map<std::string, Entry> by_name_;
  std::optional<Refusal> stated_twice_;
};

/// Does it state turns of a cell, not the order of a resource of the plan?
[[nodiscard]] bool is_turns(const LinkOrder& order);

}  // namespace longhaul::plan
