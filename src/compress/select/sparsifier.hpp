#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "compress/select/candidates.hpp"
#include "compress/settings.hpp"
#include "compress/sparse_set.hpp"

namespace longhaul::compress {

/// What a sparsifier remembers from one gradient to the next; goes into checkpoints.
struct SparsifierState {
  float threshold = 0;        ///< mean magnitude of a block; 0: not chosen yet
  float first_threshold = 0;  ///< a hundredth of it is what the threshold grows by
  std::uint64_t calls = 0;
  friend bool operator==(const SparsifierState&, const SparsifierState&) = default;
};

/// StellaTrain's section 3.2, with additive increase and multiplicative decrease: the threshold
/// after `above` blocks exceeded it where `wanted` were wanted.
[[nodiscard]] float adapted_threshold(const SparsifierState& state, std::int64_t above,
                                      std::int64_t wanted);

/// Chooses what is sent of one vector (a part's gradient), again and again. What a receiver decodes
/// and what stays add up to what was there: rounding stays, too. Throws NotFinite.
class Sparsifier {
public:
  /// Throws Error where the settings cannot be.
  Sparsifier(const Settings& settings, std::int64_t count, const SparsifierState& state = {});

  /// The residual lives in the gradient itself: `sum` loses what is sent.
  [[nodiscard]] SparseSet take(std::span<float> sum);
  /// With error feedback: adds the gradient to the residual, which then loses what is sent.
  [[nodiscard]] SparseSet take(std::span<const float> gradient, std::span<float> residual);
  /// Without feedback: nothing is kept for later.
  [[nodiscard]] SparseSet take_without_feedback(std::span<const float> gradient);

  /// The share that is kept from now on. A threshold is chosen exactly again where that is another.
  void set_keep(double keep);
  [[nodiscard]] double keep() const { return settings_.keep; }
  [[nodiscard]] const SparsifierState& state() const { return state_; }
  /// Mean magnitude that the last call held blocks against: the threshold, or that of the least
  /// block that an exact method kept. 0 of `randomk`.
  [[nodiscard]] float last_threshold() const { return last_threshold_; }
  [[nodiscard]] std::int64_t blocks_wanted() const { return wanted_; }

private:
  std::vector<std::uint32_t> choose(Scanned scanned);
  std::vector<std::uint32_t> choose_exactly(Scanned scanned);
  std::vector<std::uint32_t> choose_above_threshold(const Scanned& scanned);
  std::vector<std::uint32_t> choose_at_random(const Scanned& scanned) const;
  SparseSet send(std::span<float> sum, std::vector<std::uint32_t> blocks) const;

  Settings settings_;
  std::int64_t count_;
  std::int64_t wanted_;
  SparsifierState state_;
  float last_threshold_ = 0;
  Candidates candidates_;
};

}  // namespace longhaul::compress
