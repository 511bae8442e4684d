#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "scenario/training.hpp"
#include "training/replay/replay_set.hpp"

namespace longhaul::training {

/// Numbers that are kept or left out together: 1 of topk.
[[nodiscard]] int replayed_block(const GradientCompression& compress);

/// max(1, floor(count share / block)) blocks, all where the share is 1 or more, none of nothing. A
/// product that is a whole number but for rounding, 1e-12 of it, is taken as one.
[[nodiscard]] std::size_t replayed_blocks(std::size_t count, double share, int block);

/// Sum of the magnitudes of a block, which lacks numbers only at the end of a part: as a tree in
/// fp32, i and i + block / 2 first, then i and i + block / 4, .. . Of a short block, times block /
/// its numbers.
[[nodiscard]] float replayed_score(std::span<const float> numbers, int block);

/// Chooses what is sent of one part, iteration by iteration; has the state of methods that need
/// one. Sorts everything.
class ReplayChooser {
public:
  /// Of `count` numbers, of which `share` is kept; `seed` is of randomk.
  ReplayChooser(const GradientCompression& compress, std::size_t count, double share,
                std::uint64_t seed);

  /// What is sent of `sum`, rounded; `sum` keeps the rest. Dense methods send all.
  [[nodiscard]] ReplaySet take(std::span<float> sum);
  /// Of the numbers, from now on; where that is another, `threshold` sorts again.
  void set_share(double share);
  /// Mean magnitude that the next choice of `threshold` holds blocks against; 0: it sorts.
  [[nodiscard]] float threshold() const { return threshold_; }

private:
  [[nodiscard]] std::vector<std::size_t> chosen_blocks(std::span<const float> sum);
  [[nodiscard]] std::vector<std::size_t> drawn() const;
  void adapt(std::size_t above);

  GradientCompression compress_;
  int block_;
  std::size_t count_, all_, wanted_;
  double share_;
  std::uint64_t seed_, calls_ = 0;
  float threshold_ = 0, first_threshold_ = 0;
};

}  // namespace longhaul::training
