#pragma once

#include <optional>
#include <string>

#include "scenario/scenario.hpp"
#include "schedule/schedule.hpp"

namespace longhaul::schedule {

enum class ViolationKind { shape, missing_block, repeated_block, dependency, deadlock, memory };

/// Why a schedule cannot run, worded for people: device, block, amount, or the cycle.
struct Violation {
  ViolationKind kind;
  std::string text;
};

/// The first violation of structure: every block of every chunk and microbatch once and on the
/// chunk's device (F; and either B, or D and W; all parts), no order on one device against a
/// dependency, no cycle across devices (named block by block).
[[nodiscard]] std::optional<Violation> first_violation(const Schedule& schedule);

/// The same, then shape against the scenario and memory against budget and capacity.
[[nodiscard]] std::optional<Violation> first_violation(const Schedule& schedule,
                                                       const Scenario& scenario);

/// The same but for memory: a schedule over its budget can be simulated all the same.
[[nodiscard]] std::optional<std::string> violation_but_memory(const Schedule& schedule,
                                                              const Scenario& scenario);

}  // namespace longhaul::schedule
