#pragma once

#include <cstddef>
#include <unordered_map>
#include <vector>

#include "prefill/lowering/expected_deadlines.hpp"
#include "prefill/lowering/filled_plan.hpp"
#include "prefill/play/expected_training.hpp"

namespace longhaul::prefill {

/// Says what the prompts of a plan hold of GPUs: the holdings and the memory of `closings`, whose
/// stages are there. Precondition: `options` has the memory.
void add_holdings(Closings& closings, const FilledPlan& filled, const std::vector<Served>& served,
                  const std::vector<Decision>& decisions, const FillOptions& options);

/// What prompts hold of GPUs, as one knows who hears of ends.
class HeldMemory {
public:
  /// `closings` live as long.
  explicit HeldMemory(const Closings& closings);
  void heed(OpId op, Duration end);
  /// May a prompt begin on its GPU with this op now? `expected` has heard the same.
  [[nodiscard]] bool fits(OpId op, ExpectedTraining& expected, Duration now);

private:
  [[nodiscard]] bool is_over(const Closings::Holding& holding,
                             const ExpectedTraining& expected) const;

  const Closings& closings_;
  std::vector<bool> ended_;        ///< by op
  std::vector<Duration> release_;  ///< by holding, of one that has begun: as it is expected
  std::unordered_map<OpId, std::size_t> holding_of_;
  std::vector<std::vector<std::size_t>> of_rank_;  ///< those that are not over
};

}  // namespace longhaul::prefill
