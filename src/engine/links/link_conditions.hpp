#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "base/clock.hpp"
#include "plan/link_model/weather.hpp"

namespace longhaul::engine {

/// The weather that ranks play, and when it began.
struct PlayedWeather {
  const plan::Weather* weather =
      nullptr;  ///< of the plan that is run; none: links are as the plan says
  /// By this host's clock. kNever: not yet, which is how links are in iterations that warm up.
  TimePoint start = kNever;
};

/// The age of weather that has not begun: far below 0, and far from where clocks end.
inline constexpr Duration kBeforeWeather = -std::chrono::hours{24 * 365};

/// Durations of ops that begin now: as the plan says, or as the weather has it.
class LinkConditions {
public:
  explicit LinkConditions(const Plan& plan) : plan_{plan} {}
  void begin_iteration(int iteration, const PlayedWeather& played);

  [[nodiscard]] Duration hold(OpId send, TimePoint begin) const;
  /// Latency of the message whose transfer is over at `end`.
  [[nodiscard]] Duration latency(OpId recv, TimePoint end) const;
  [[nodiscard]] Duration collective(OpId member, TimePoint begin) const;

  /// A transfer or collective of this rank goes on: an outage may hold it.
  void going_on(OpId op, TimePoint since);
  void over(OpId op);
  /// An op that an outage holds.
  struct OutageHold {
    OpId op{};
    TimePoint since{};  ///< when it was noticed: at its begin, or by the first look
    Duration left{};    ///< of the outage, from now on
  };
  /// The one that has been held longest. Call it now and then: what happens between two looks is
  /// noticed by the second.
  [[nodiscard]] std::optional<OutageHold> look_for_outage(TimePoint at);

  /// Time since the weather began; kBeforeWeather where it has not.
  [[nodiscard]] Duration age(TimePoint at) const;

private:
  struct GoingOn {
    OpId op{};
    TimePoint since{};
    TimePoint held_since = kNever;
  };

  const Plan& plan_;
  PlayedWeather played_;
  std::uint64_t iteration_ = 0;
  std::vector<GoingOn> going_on_;
};

}  // namespace longhaul::engine
