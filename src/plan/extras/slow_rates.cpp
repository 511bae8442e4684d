#include "plan/extras/slow_rates.hpp"

#include <algorithm>
#include <numeric>

namespace longhaul::plan {

SlowRates::SlowRates(const Overlap& overlap) {
  // A slowdown is a/b in lowest terms; parts are those of the least common multiple of all a.
  std::array<std::int64_t, kCountOf<NetworkLevel>> over{}, under{};
  const auto levels = every<NetworkLevel>();
  for (std::size_t i = 0; i < levels.size(); ++i) {
    const std::int64_t millionths = overlap.at(levels[i]);
    const std::int64_t common = std::gcd(millionths, Overlap::kNone);
    over[i] = millionths / common;
    under[i] = Overlap::kNone / common;
    const auto shared = std::gcd(static_cast<std::int64_t>(whole_ % over[i]), over[i]);
    whole_ *= over[i] / shared;
  }
  for (std::size_t i = 0; i < levels.size(); ++i) rates_[i] = whole_ / over[i] * under[i];
}

SlowRates::Parts SlowRates::rate(const Holds& holds) const {
  Parts rate = whole_;
  for (std::size_t i = 0; i < rates_.size(); ++i)
    if (holds[i] > 0) rate = std::min(rate, rates_[i]);
  return rate;
}

}  // namespace longhaul::plan
