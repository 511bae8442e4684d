#pragma once

#include <vector>

#include "scenario/scenario.hpp"

namespace longhaul::plan {

/// One link over time: its trace, begun anew where it repeats, and its outages. Times
/// count from the start of the weather; before it the link is as at time 0, and not out.
class LinkTimeline {
public:
  explicit LinkTimeline(const Link& link);

  struct Stretch {
    Duration latency{};
    Bandwidth bandwidth;
    bool out = false;  ///< nothing moves
    Duration until{};  ///< when something changes; Duration::max(): never
  };
  /// The stretch that `time` lies in: a binary search.
  [[nodiscard]] Stretch at(Duration time) const;
  /// Latency at `time`, outage or not.
  [[nodiscard]] Duration latency(Duration time) const;

private:
  [[nodiscard]] Stretch state_at(Duration time) const;

  std::shared_ptr<const LinkTrace> trace_;
  std::optional<Duration> repeat_;
  Duration latency_;
  Bandwidth bandwidth_;
  std::vector<Outage> outages_;
};

}  // namespace longhaul::plan
