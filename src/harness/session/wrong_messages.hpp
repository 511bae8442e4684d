#pragma once

#include <string>
#include <vector>

#include "engine/options.hpp"
#include "engine/watchdog/ranks.hpp"

namespace longhaul::bench {

/// Collective. What the ranks found wrong, in words, in order of ranks: who received it, on which
/// leg, from whom, whose message it should have been. On rank 0; the first few.
[[nodiscard]] std::vector<std::string> gather_wrong_messages(const Ranks& ranks, const Plan& plan,
                                                             const std::vector<WrongMessage>& mine);

}  // namespace longhaul::bench
