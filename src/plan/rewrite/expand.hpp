#pragma once

#include <cstdint>
#include <vector>

#include "base/result.hpp"
#include "plan/plan.hpp"
#include "trace/timeline/timeline.hpp"

namespace longhaul::plan {

/// The ids of operators: op `id` of a plan of blocks is the ops first(id) to last(id) of its
/// expanded plan, one for each operator of its list, or one where nothing is known below it.
class OperatorIds {
public:
  /// The plan is of blocks.
  explicit OperatorIds(const Plan& plan);
  [[nodiscard]] OpId first(OpId id) const { return OpId{first_[index(id)]}; }
  [[nodiscard]] OpId last(OpId id) const { return OpId{first_[index(id) + 1] - 1}; }
  /// Ops of the expanded plan.
  [[nodiscard]] std::size_t ops() const { return first_.back(); }

private:
  std::vector<std::uint32_t> first_;  ///< of each op; one more at the end
};

/// The plan with each operator as an op of its own, in the order of its list: for what looks inside
/// a block, or changes what is there. What waited for a block waits for its last operator, a
/// block's dependencies are those of its first. Memory is taken at the start of the first and
/// released at the end of the last. Plan::operators must be known; a plan of operators stays what
/// it is.
[[nodiscard]] Plan expand(const Plan& plan);

/// The plan of blocks again: fold(expand(p)) has the ops of p. Refused where something overlaps
/// inside a block, for a block's time says nothing about it then: an operator waits for something,
/// or something waits for one that is not the last, or the operators are not those of a block's
/// list, in its order and with its times.
Result<Plan> fold(const Plan& plan);

/// Adds the rows of one iteration of expand(plan), out of the times of `plan` alone: an operator
/// begins when the one before ends. No larger plan is made. Blocks must not slow beside messages.
void append_operator_rows(Timeline& timeline, const Plan& plan, const OpTimes& times,
                          int iteration);

/// How many operators lie below the blocks of a plan, and in how many lists.
struct OperatorCount {
  std::size_t blocks = 0;
  std::size_t operators = 0;
  std::size_t lists = 0;
};
[[nodiscard]] OperatorCount count_operators(const Plan& plan);

}  // namespace longhaul::plan
