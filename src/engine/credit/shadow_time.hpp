#pragma once

#include <algorithm>

#include "base/clock.hpp"

namespace longhaul::engine {

/// When something was seen, and when it would have been had no op been given credit for lateness:
/// the same delays of this host, one after the other. The second is never the earlier one; their
/// distance, the lag, is all that ranks tell each other.
struct ShadowTime {
  TimePoint seen{};
  TimePoint shadow{};

  /// Something that both had to wait for was seen `at`, and in the shadow `lag` later.
  void raise(TimePoint at, Duration lag) {
    seen = std::max(seen, at);
    shadow = std::max(shadow, at + lag);
  }
  void raise(const ShadowTime& other) { raise(other.seen, other.lag()); }
  [[nodiscard]] Duration lag() const { return shadow - seen; }
};

/// Credit that a rank's ops were given: blocks, and holds of links.
struct CreditUse {
  std::int64_t ops = 0;       ///< that may be given some
  std::int64_t credited = 0;  ///< of these, that were
  Duration total{};
  Duration largest{};
  void add(Duration credit) {
    ++ops;
    if (credit <= Duration::zero()) return;
    ++credited;
    total += credit;
    largest = std::max(largest, credit);
  }
  CreditUse& operator+=(const CreditUse& other) {
    ops += other.ops;
    credited += other.credited;
    total += other.total;
    largest = std::max(largest, other.largest);
    return *this;
  }
};

}  // namespace longhaul::engine
