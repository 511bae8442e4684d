#include "sim/simulate.hpp"

#include <algorithm>
#include <utility>

#include "base/error.hpp"
#include "plan/check_extras.hpp"
#include "sim/events/event_driver.hpp"
#include "sim/lane_sweep.hpp"

namespace longhaul::sim {
namespace {

Duration last_end(const OpTimes& times) {
  Duration last{};
  for (const OpTime& time : times) last = std::max(last, time.end);
  return last;
}

}  // namespace

OpTimes simulate(const Plan& plan) { return try_simulate(plan).or_throw(); }

Result<OpTimes> try_simulate(const Plan& plan) {
  if (!plan::needs_order_of_time(plan)) return LaneSweep{plan}.run();
  Result<OpResults> results = simulate_in_order_of_time(plan);
  if (!results) return results.refusal();
  return (*std::move(results)).times;
}

Result<OpTimes> try_simulate(const Plan& plan, std::vector<Tie>& ties) {
  LONGHAUL_ASSERT(!plan::needs_order_of_time(plan), "{} needs order of time", plan.schedule);
  LaneSweep sweep{plan};
  sweep.note_ties(ties);
  Result<OpTimes> times = sweep.run();
  std::ranges::sort(ties);
  ties.erase(std::ranges::unique(ties).begin(), ties.end());
  return times;
}

OpTimes simulate(const Plan& plan, const plan::WeatherOfIteration& at, Duration hop) {
  if (!plan::needs_order_of_time(plan)) return LaneSweep{plan, at, hop}.run().or_throw();
  if (hop > Duration::zero())
    fail(
        "the plan of {} has what is simulated in order of time, where ranks hear of each other at "
        "once. Leave the hop out.",
        plan.schedule);
  return simulate_in_order_of_time(plan, at).or_throw().times;
}

OpResults simulate_results(const Plan& plan, const plan::WeatherOfIteration& at) {
  if (!plan::needs_order_of_time(plan)) return {LaneSweep{plan, at}.run().or_throw()};
  return simulate_in_order_of_time(plan, at).or_throw();
}

Result<OpResults> simulate_in_order_of_time(const Plan& plan, const plan::WeatherOfIteration& at) {
  if (auto why = plan::why_unsound(plan)) return *std::move(why);
  const plan::Stream once;
  return EventDriver{plan, once, at}.run();
}

StreamFacts simulate_stream(const Plan& plan, const plan::Stream& stream,
                            const std::function<void(const StreamedIteration&)>& sink,
                            const plan::WeatherOfIteration& at) {
  require_none(plan::why_unsound(plan, stream));
  EventDriver driver{plan, stream, at};
  require_none(driver.run([&](int iteration, const OpResults& results) {
    sink({iteration, results});
  }));
  return {driver.most_live_iterations()};
}

StreamFacts simulate_steered_stream(const Plan& plan, const plan::Stream& stream,
                                    const StreamSteering& steering,
                                    const plan::WeatherOfIteration& at) {
  require_none(plan::why_unsound(plan, stream));
  EventDriver driver{plan, stream, at};
  require_none(driver.run([&](int iteration, const OpResults& results) {
    if (const auto setting = steering({iteration, results})) driver.add_setting(*setting);
  }));
  return {driver.most_live_iterations(), driver.most_settings()};
}

std::vector<PlayedIteration> play_iterations(const Plan& plan, const plan::Weather& weather,
                                             int count) {
  constexpr Duration kLongest{std::int64_t{1} << 61};
  std::vector<PlayedIteration> played;
  Duration begin{};
  for (int i = 0; i < count; ++i) {
    const Duration makespan =
        last_end(simulate(plan, {&weather, static_cast<std::uint64_t>(i), begin}));
    played.push_back({begin, makespan});
    begin += makespan;
    if (begin > kLongest)
      fail("{} iterations of {} last longer than 73 years (64 bits hold no more). Play fewer.",
           count, plan.schedule);
  }
  return played;
}

}  // namespace longhaul::sim
