#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <vector>

#include "base/listed_enum.hpp"
#include "training/replay/replay_chunks.hpp"
#include "training/replay/replay_step.hpp"

namespace longhaul::training {

/// Methods with sets and steps of their own: docs/training.md, "What an iteration computes".
#define LONGHAUL_REPLAYED_RIVALS(X) X(dgc, "dgc") X(demo, "demo") X(onebit, "onebit")
LONGHAUL_LISTED_ENUM(ReplayedRival, LONGHAUL_REPLAYED_RIVALS);

struct ReplayRival {
  ReplayedRival method = ReplayedRival::dgc;
  double keep = 0.01;     ///< dgc: of the numbers; demo: of the cosines
  float momentum = 0.9F;  ///< of dgc
  float decay = 0.999F;   ///< of demo's momentum
  int warm_up = 0;        ///< onebit: dense steps before; dgc: steps of each stage of its ramp
};

/// One part of all replicas under such a method, by plain loops; compress/rivals/ is what ranks
/// use.
class ReplayRivalPart {
public:
  ReplayRivalPart() = default;
  virtual ~ReplayRivalPart() = default;
  ReplayRivalPart(const ReplayRivalPart&) = delete;
  ReplayRivalPart& operator=(const ReplayRivalPart&) = delete;

  /// One iteration: sets of all `gradients` [replica][count], which are shares of their mean, and
  /// the step with them.
  virtual void run(std::span<const std::span<const float>> gradients, std::span<float> weights) = 0;
  /// What waits on a replica.
  [[nodiscard]] virtual std::span<const float> residual(std::size_t replica) const = 0;
};

/// Of a part of `count` numbers, of demo with the places of its tensors. `step` has the learning
/// rate, and AdamW's factors of onebit. Throws Error where there is no such method: onebit without
/// a warm-up, no share, no decay.
[[nodiscard]] std::unique_ptr<ReplayRivalPart> make_replayed_rival(
    const ReplayRival& rival, const StepRule& step, std::size_t replicas, std::size_t count,
    std::span<const nn::ParameterPlace> tensors = {});

/// SparseLoCo's values: a sign and one of two magnitudes, the means of those whose magnitude is
/// below the mean of all and of the others.
void round_to_four_levels(std::span<float> numbers);

}  // namespace longhaul::training
