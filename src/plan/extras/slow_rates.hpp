#pragma once

#include <array>
#include <cstdint>

#include "base/units.hpp"
#include "base/vocabulary.hpp"
#include "plan/extras/extras.hpp"

namespace longhaul::plan {

/// The rates of computation under an Overlap, in parts of a nanosecond so small that each is a
/// whole number of them: what is left of a block is exact, and only its end is rounded, upwards.
class SlowRates {
public:
  __extension__ using Parts = __int128;
  /// Messages of each NetworkLevel that hold a rank.
  using Holds = std::array<int, kCountOf<NetworkLevel>>;

  explicit SlowRates(const Overlap& overlap);

  [[nodiscard]] Parts parts_of(Duration work) const { return whole_ * work.count(); }
  /// Parts that are done in a nanosecond beside these messages.
  [[nodiscard]] Parts rate(const Holds& holds) const;
  /// Until the first nanosecond at which nothing is left.
  [[nodiscard]] static Duration time_for(Parts left, Parts rate) {
    return Duration{left <= 0 ? 0 : static_cast<std::int64_t>((left + rate - 1) / rate)};
  }

private:
  Parts whole_ = 1;                                    ///< parts of a nanosecond
  std::array<Parts, kCountOf<NetworkLevel>> rates_{};  ///< beside a message of the level
};

}  // namespace longhaul::plan
