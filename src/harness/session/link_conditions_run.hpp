#pragma once

#include <memory>
#include <vector>

#include "comm/group/clock_sync.hpp"
#include "engine/options.hpp"
#include "engine/ranks.hpp"
#include "plan/link_model/weather.hpp"
#include "trace/timeline/timeline.hpp"

namespace longhaul::harness {

/// Predictions of the iterations of a schedule, each in the weather that it met.
struct WeatherOutcome {
  std::vector<Duration> begins;     ///< of each measured iteration, since the weather began
  std::vector<Duration> predicted;  ///< makespan of each
};

/// A rank that waits for others speaks so much later than the one whose op an outage holds, also
/// where the outage was not foreseen.
inline constexpr Duration kAfterYou = std::chrono::milliseconds{250};

/// The weather of a plan that ranks run.
class LinkConditionsRun {
public:
  /// `plan` was lowered on `scenario` and outlives this. Without emulation nothing is played.
  LinkConditionsRun(const Plan& plan, const Scenario& scenario, engine::Emulation emulation);

  /// nullptr: links do not vary, or are not emulated.
  [[nodiscard]] const plan::Weather* played() const { return weather_.get(); }
  /// Times of all ops in an iteration that begins at that age of the weather; there is one.
  [[nodiscard]] OpTimes predict(int iteration, Duration age) const;
  /// Longest wait of the rank in an iteration that began at `began`, for the watchdog.
  [[nodiscard]] Duration longest_wait(int iteration, TimePoint began, Rank rank) const;

private:
  const Plan& plan_;
  std::unique_ptr<const Scenario> scenario_;
  std::unique_ptr<const plan::Weather> weather_;
};

/// Collective. When the weather began, by this host's clock, if rank 0 says that it is so old now.
[[nodiscard]] TimePoint begin_weather(const engine::Ranks& ranks, const comm::ClockOffset& clock,
                                      Duration age = {});

}  // namespace longhaul::harness
