#pragma once

#include <cstddef>
#include <optional>
#include <unordered_map>
#include <vector>

#include "base/index.hpp"
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
  void heed(OpId op) { ended_[index(op)] = true; }
  /// May a prompt start on its GPU with this op then, to end by `deadline`? One that may holds its
  /// memory from there on, until another answer is given. `expected` has heard the same.
  [[nodiscard]] bool fits(OpId op, ExpectedTraining& expected, Duration start, Duration now,
                          Duration deadline);

private:
  /// When it is expected to be released, as late as what closes its bubbles.
  [[nodiscard]] Duration release_of(const Closings::Holding& holding, Duration start,
                                    ExpectedTraining& expected, Duration now) const;
  [[nodiscard]] bool is_over(const Closings::Holding& holding,
                             const ExpectedTraining& expected) const;

  const Closings& closings_;
  std::vector<bool> ended_;                      ///< by op
  std::vector<std::optional<Duration>> starts_;  ///< by holding, of those that may
  std::unordered_map<OpId, std::size_t> holding_of_;
  std::vector<std::vector<std::size_t>> of_rank_;  ///< those that are not over
};

}  // namespace longhaul::prefill
