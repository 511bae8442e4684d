#pragma once

#include <memory>
#include <span>
#include <vector>

#include "compress/optimizer/sparse_optimizer.hpp"
#include "training/parts/rival_methods.hpp"

namespace longhaul::training {

/// How replicas that step by themselves meet: local SGD, DiLoCo (Douillard et al. 2023), Streaming
/// DiLoCo (Douillard et al. 2025) and SparseLoCo (Sarfi et al. 2025). The gradient of own_set() is
/// the outer one, the weights that all had less a replica's after its local steps.
[[nodiscard]] std::unique_ptr<PartMethod> make_local(const RivalSettings& settings,
                                                     const PartPlace& place);

/// The local steps of one part: a copy of the weights that an optimizer steps between exchanges.
/// Its moments stay over exchanges, as the authors have them.
class LocalSteps {
public:
  LocalSteps(const StepSettings& settings, std::int64_t numbers);

  /// All replicas have these weights.
  void start(std::span<const float> weights);
  /// All have these after an update, and the replica mixes them with its own, of which it keeps a
  /// share; the next outer gradient is from these on.
  void meet(std::span<const float> weights, float own);
  /// `gradient`: of the replica's own microbatch alone.
  void step(std::span<const float> gradient);
  [[nodiscard]] const std::vector<float>& weights() const { return weights_; }
  /// The weights it started with less those now.
  [[nodiscard]] std::vector<float> outer_gradient() const;

  void save(StateWriter& to) const;
  void load(StateReader& from);

private:
  StepSettings settings_;
  compress::OptimizerState state_;
  std::int64_t steps_ = 0;
  std::vector<float> anchor_, weights_;
};

}  // namespace longhaul::training
