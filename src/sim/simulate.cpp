#include "sim/simulate.hpp"

#include <algorithm>

#include "base/error.hpp"
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

Result<OpTimes> try_simulate(const Plan& plan) { return LaneSweep{plan}.run(); }

OpTimes simulate(const Plan& plan, const plan::WeatherOfIteration& at, Duration hop) {
  return LaneSweep{plan, at, hop}.run().or_throw();
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
