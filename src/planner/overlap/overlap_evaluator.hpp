#pragma once

#include <optional>
#include <vector>

#include "planner/overlap/evaluate_overlap.hpp"
#include "planner/overlap/overlap_decisions.hpp"
#include "planner/overlap/overlap_search.hpp"

namespace longhaul::planner {

/// The most that a rank holds, and whether all ranks stay within their devices' capacity, which
/// differs by stage: the rank that lacks most need not be the one that holds most.
struct PeakMemory {
  Bytes peak;
  std::optional<MemoryOverflow> overflow;
  [[nodiscard]] bool fits() const { return !overflow; }
};
[[nodiscard]] PeakMemory peak_of(const collective::IterationPlan& plan,
                                 const collective::IterationTimes& times);

/// Decisions, and how they do.
struct EvaluatedOverlap {
  OverlapDecisions decisions;
  Duration makespan{};
  Bytes peak;  ///< the most that a rank holds
  bool fits = true;
  Grain grain = Grain::steps;
};

/// The faster one of those that fit; of others the one that takes less memory.
[[nodiscard]] bool is_better(const EvaluatedOverlap& a, const EvaluatedOverlap& b);

/// Simulates decisions, each once, within the budget.
class OverlapEvaluator {
public:
  /// `variants` outlive it.
  OverlapEvaluator(const std::vector<OverlapVariant>& variants, const OverlapBudget& budget)
      : variants_{variants}, budget_{budget} {}

  /// Nothing: seen already, the budget is spent, it cannot run, or it is no better than `rival`, of
  /// which the simulation gives up as soon as that is certain.
  [[nodiscard]] std::optional<EvaluatedOverlap> operator()(const OverlapDecisions& decisions,
                                                           const EvaluatedOverlap* rival = nullptr);
  /// A plan as it is, whatever the budget.
  [[nodiscard]] std::optional<EvaluatedOverlap> simulated(const collective::IterationPlan& plan,
                                                          const OverlapDecisions& decisions = {},
                                                          const EvaluatedOverlap* rival = nullptr);
  /// Asks the watch, until it has said so once.
  [[nodiscard]] bool is_spent() {
    is_stopped_ = is_stopped_ || (budget_.watch && budget_.watch(evaluated_));
    return is_stopped_ || evaluated_ >= budget_.evaluations || ops_ >= budget_.ops;
  }
  [[nodiscard]] bool is_stopped() const { return is_stopped_; }
  [[nodiscard]] std::size_t evaluated() const { return evaluated_; }

private:
  const std::vector<OverlapVariant>& variants_;
  OverlapBudget budget_;
  std::vector<OverlapDecisions> seen_;
  collective::FoldingMemo memo_;
  std::size_t evaluated_ = 0, ops_ = 0;
  bool is_stopped_ = false;
};

}  // namespace longhaul::planner
