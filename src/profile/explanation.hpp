#pragma once

#include <optional>
#include <string>
#include <vector>

#include "profile/import/imported_profile.hpp"
#include "scenario/files/profile_table.hpp"
#include "scenario/needed_operators.hpp"

namespace longhaul::profile {

/// How an operator of a prediction stands beside a trace.
#define LONGHAUL_EXPLANATIONS(X)  \
  X(as_predicted, "as predicted") \
  X(slower, "slower")             \
  X(faster, "faster")             \
  X(missing, "missing in the trace") X(unpredicted, "not predicted") X(no_time, "no time known")
LONGHAUL_LISTED_ENUM(ExplanationStatus, LONGHAUL_EXPLANATIONS);

/// An operator of a scenario's model, of a trace, or of both.
struct ExplainedOperator {
  std::string block;  ///< "F", "B" (D and W together) or "update"
  std::string operation, shape;
  int calls = 0;                        ///< of a microbatch, all parts together
  std::optional<Duration> predicted{};  ///< of a call
  std::optional<Duration> measured{};   ///< likewise, the median
  std::size_t runs = 0;                 ///< in the trace
  ExplanationStatus status = ExplanationStatus::missing;
};

struct Explanation {
  std::vector<ExplainedOperator> operators;  ///< those that cost most first
  Duration span{}, busy{};                   ///< of the trace: from its first kernel to its last
  Duration longest_wait{};                   ///< between two kernels
  std::size_t orphans = 0;
};

/// Operators are the same where name and sizes are; of those whose sizes the trace spells otherwise
/// than docs/profile.md the name alone counts. As predicted: within `tolerance` (0.1) of it.
[[nodiscard]] Explanation explained(const KinetoTrace& trace,
                                    const std::vector<scenario::NeededOperator>& needed,
                                    const scenario::ProfileTable* profile, double tolerance = 0.1);

}  // namespace longhaul::profile
