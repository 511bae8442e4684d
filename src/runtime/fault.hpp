#pragma once

#include <optional>
#include <string_view>

#include "base/ids.hpp"
#include "plan/plan.hpp"

namespace longhaul {

enum class FaultKind { kill, freeze, no_receive };

/// A fault on purpose, for tests of the watchdog: what happens to one rank at one of its ops.
struct Fault {
  FaultKind kind = FaultKind::kill;
  Rank rank{};
  int op_index = 0;  ///< among the rank's ops, in order of id
  int iteration = 0;
};

/// "kill@RANK:OPINDEX[:ITERATION]", likewise freeze@ and norecv@. norecv takes the first receive
/// at or behind OPINDEX.
[[nodiscard]] Fault parse_fault(std::string_view text);

/// The op that the fault strikes when `self` runs `iteration`; nullopt: none.
[[nodiscard]] std::optional<OpId> struck_op(const std::optional<Fault>& fault, const Plan& plan,
                                            Rank self, int iteration);
/// Kills or stops this process; nothing for no_receive.
void strike(const Fault& fault);

}  // namespace longhaul
