#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "compress/select/sparsifier.hpp"

namespace longhaul::compress {

/// One replica's side of deep gradient compression (Lin et al. 2018): momentum is gathered before
/// numbers wait (momentum correction), a number that is sent loses its momentum (factor masking),
/// and the share that is kept falls step by step while training warms up. At keep 100% nothing
/// waits, so nothing is masked either: momentum SGD, as the authors' code has it.
class Dgc {
public:
  struct Settings {
    double keep = 0.001;
    float momentum = 0.9F;
    int ramp_steps = 0;  ///< of each of the five stages 25%, 6.25%, 1.6%, 0.4%, 0.1%; 0: no ramp
  };
  /// All that it remembers between two calls.
  struct State {
    std::int64_t steps = 0;  ///< which decide where its ramp stands
    std::vector<float> momenta, waiting;
  };
  /// Throws Error where keep is no share or momentum is not from 0 to 1.
  Dgc(const Settings& settings, std::int64_t count);

  /// What this replica sends; a step is the learning rate times the mean over replicas.
  [[nodiscard]] SparseSet take(std::span<const float> gradient);
  /// Of the next call.
  [[nodiscard]] double keep() const;
  /// Momenta, and what waits.
  [[nodiscard]] const std::vector<float>& momenta() const { return state_.momenta; }
  [[nodiscard]] const std::vector<float>& waiting() const { return state_.waiting; }

  [[nodiscard]] const State& state() const { return state_; }
  /// Of one that was made the same. Throws Error where it was not.
  void restore(State state);

private:
  Settings settings_;
  State state_;
};

}  // namespace longhaul::compress
