#pragma once

#include <bit>
#include <limits>
#include <vector>

#include "base/units.hpp"

namespace longhaul::schedule::families {

/// Which device acts next: a tree of winners over the devices' next times. Finding the earliest
/// takes no time, a change one comparison a level; ties go to the lower device.
class GreedyClock {
public:
  static constexpr Duration kNever{std::numeric_limits<std::int64_t>::max()};

  explicit GreedyClock(std::size_t devices)
      : leaves_{std::bit_ceil(devices)}, times_(leaves_, kNever), winner_(2 * leaves_) {
    for (std::size_t i = 0; i < leaves_; ++i) winner_[leaves_ + i] = static_cast<std::uint32_t>(i);
    for (std::size_t i = leaves_; i-- > 1;) winner_[i] = winner_[2 * i];
  }

  [[nodiscard]] std::size_t earliest() const { return leaves_ == 1 ? 0 : winner_[1]; }
  [[nodiscard]] Duration time(std::size_t device) const { return times_[device]; }
  /// A third of a greedy run is here: 17% longer where the compiler calls it.
  [[gnu::always_inline]] inline void set(std::size_t device, Duration time) {
    times_[device] = time;
    for (std::size_t node = (leaves_ + device) / 2; node >= 1; node /= 2) {
      const std::uint32_t left = winner_[2 * node];
      const std::uint32_t right = winner_[2 * node + 1];
      winner_[node] = times_[right] < times_[left] ? right : left;
    }
  }

private:
  std::size_t leaves_;
  std::vector<Duration> times_;
  std::vector<std::uint32_t> winner_;  ///< index: node of the tree, the root is 1
};

}  // namespace longhaul::schedule::families
