#pragma once

#include <optional>
#include <string_view>

#include "base/ids.hpp"
#include "plan/plan.hpp"

namespace longhaul {

/// The first three strike a rank; the others one message that it sends.
enum class FaultKind { kill, freeze, no_receive, lose, corrupt, mix_up, send_twice };

/// A fault on purpose, for tests of the watchdog: what happens to one rank at one of its ops.
struct Fault {
  FaultKind kind = FaultKind::kill;
  Rank rank{};
  int op_index = 0;  ///< among the rank's ops, in order of id
  int iteration = 0;
};

/// "kill@RANK:OPINDEX[:ITERATION]", likewise freeze@, norecv@, lose@, corrupt@, mixup@ and twice@.
/// Each takes the first op of its kind (block, receive or send) at or behind OPINDEX.
[[nodiscard]] Fault parse_fault(std::string_view text);

/// The op that the fault strikes when `self` runs `iteration`; nullopt: none.
[[nodiscard]] std::optional<OpId> struck_op(const std::optional<Fault>& fault, const Plan& plan,
                                            Rank self, int iteration);
/// Kills or stops this process; nothing for the others.
void strike(const Fault& fault);

}  // namespace longhaul
