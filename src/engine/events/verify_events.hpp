#pragma once

#include <vector>

#include "engine/events/event_facts.hpp"
#include "engine/events/live_ops.hpp"
#include "engine/options.hpp"

namespace longhaul::engine {

/// Checks the order of this rank's ops of an iteration by what it recorded: none begins before what
/// it depends on has ended, and lanes whose ops start in turn keep their order.
[[nodiscard]] Checks verify_events(const Plan& plan, const EventFacts& facts, Rank rank,
                                   const std::vector<OpInstance>& ops);

}  // namespace longhaul::engine
