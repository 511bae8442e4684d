#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "plan/link_model/jitter.hpp"
#include "plan/link_model/link_timeline.hpp"
#include "plan/plan.hpp"
#include "scenario/scenario.hpp"
#include "schedule/ring_time.hpp"

namespace longhaul::plan {

/// The links of a plan over the time of a run: traces, outages, jitter and losses
/// (docs/scenario.md, Weather). Immutable; every answer follows from the arguments and the
/// scenario's seeds alone, so that simulator and ranks meet the same weather, whichever of them
/// asks and in whatever order.
///
/// Times count from the start of the weather, which is the start of iteration 0; before it
/// (warm-up) links are as at time 0 and not out. A transfer goes on at the rate that link and
/// interfaces have at the time, and stands still in an outage.
class Weather {
public:
  /// `plan` is what lower() made of the scenario; both outlive the weather.
  Weather(const Plan& plan, const Scenario& scenario);

  /// Whether nothing that the plan uses varies: callers then leave the weather out.
  [[nodiscard]] bool calm() const { return calm_; }
  /// How long a send holds its resources that begins `begin` after the start (negative: before).
  [[nodiscard]] Duration hold(OpId send, std::uint64_t iteration, Duration begin) const;
  /// The same of a send that has another time and size than in the plan (StreamSetting).
  [[nodiscard]] Duration hold(OpId send, std::uint64_t iteration, Duration begin, Duration alone,
                              Bytes size) const;
  /// Latency of the message whose transfer ends `end` after the start.
  [[nodiscard]] Duration latency(OpId recv, std::uint64_t iteration, Duration end) const;
  /// The duration of a collective whose last member is ready at `begin`. Jitter and loss leave it
  /// alone.
  [[nodiscard]] Duration collective(OpId member, std::uint64_t iteration, Duration begin) const;
  /// How long nothing moves on a link of this op from `begin` on; 0: it moves. For messages about
  /// deadlines.
  [[nodiscard]] Duration outage_left(OpId op, Duration begin) const;

private:
  static constexpr std::uint32_t kCalm = 0xffffffff;
  /// A link with weather.
  struct Varying {
    const Link* link;
    LinkTimeline timeline;
    std::optional<LinkJitter> jitter;
    std::uint64_t loss_seed;
    [[nodiscard]] bool moves() const;  ///< by a trace or an outage
  };
  /// One hop over a link with weather.
  struct Hop {
    std::uint32_t link = kCalm;  ///< index into links_
    Bandwidth others;            ///< the smallest rate of what it holds beside the link
  };
  /// A collective's hops over links with a trace or an outage, and the rest of the ring.
  struct Ring {
    std::vector<Hop> hops;
    schedule::RingHop others;
  };

  class Setup;

  [[nodiscard]] JitterFactors jitter_of(const Varying& link, OpId send,
                                        std::uint64_t iteration) const;
  [[nodiscard]] bool is_lost(const Varying& link, OpId send, std::uint64_t iteration) const;

  const Plan& plan_;
  GradientSync sync_;
  std::vector<Varying> links_;
  std::vector<Hop> hop_of_lane_;
  std::vector<Ring> rings_;  ///< by collective
  bool calm_ = true;
};

/// One iteration of a run under weather, and when it begins.
struct WeatherOfIteration {
  const Weather* weather = nullptr;  ///< nullptr: calm
  std::uint64_t iteration = 0;
  Duration begin{};  ///< since the start of the weather
};

}  // namespace longhaul::plan
