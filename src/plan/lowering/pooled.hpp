#pragma once

#include <vector>

#include "plan/lowering/messages.hpp"
#include "plan/network/network.hpp"
#include "scenario/scenario.hpp"
#include "schedule/schedule.hpp"

namespace longhaul {

/// A lane of messages in lower_pooled(): where the channel leaves its datacenter, the way of
/// all its cell's nodes together, held by one message at a time.
[[nodiscard]] Route pooled_route(const Schedule& schedule, const Scenario& scenario, int replica,
                                 const Messages::Channel& channel, Network& network);

/// Puts the messages of each channel into the order of its cell's turns, where they are stated: a
/// lane that kept another one would block the cell. `messages` has an entry for each replica.
/// Throws Error where the turns are not what they should be: see TurnTable.
void order_by_turns(const Schedule& schedule, std::vector<Messages>& messages);

}  // namespace longhaul
