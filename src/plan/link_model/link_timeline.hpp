#pragma once

#include <vector>

#include "base/units.hpp"
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

/// How fast something goes on until a moment: all of it would take `whole`, or it stands still.
struct Pace {
  Duration whole{};
  Duration until{};  ///< Duration::max(): for good
  bool stopped = false;
};

/// How long a work takes that begins at `begin` and goes on at `pace(time)`, which is asked at
/// `begin` and at each `until`; before time 0 its `until` is 0 at most. In integers, the end
/// rounded once, to the nearest nanosecond: who begins later never ends earlier, and at one pace of
/// less than 2^59 ns it takes exactly `whole`.
template <typename PaceAt>
[[nodiscard]] Duration time_of_work(Duration begin, PaceAt pace) {
  __extension__ using Work = unsigned __int128;
  constexpr Work kAll = Work{1} << 120;
  Work left = kAll;
  for (Duration time = begin;;) {
    const Pace now = pace(time);
    if (!now.stopped) {
      if (now.whole == Duration::zero()) return time - begin;
      const auto whole = static_cast<Work>(now.whole.count());
      const Work in_a_nanosecond = (kAll + whole / 2) / whole;
      const Work needed = (left + in_a_nanosecond / 2) / in_a_nanosecond;
      const auto there = static_cast<Work>((now.until - time).count());
      if (needed <= there) return time - begin + Duration{static_cast<std::int64_t>(needed)};
      left -= in_a_nanosecond * there;
    }
    time = now.until;
  }
}

}  // namespace longhaul::plan
