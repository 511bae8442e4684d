#include "sim/simulate.hpp"

#include "sim/lane_sweep.hpp"

namespace longhaul::sim {

OpTimes simulate(const Plan& plan) { return try_simulate(plan).or_throw(); }

Result<OpTimes> try_simulate(const Plan& plan) { return LaneSweep{plan}.run(); }

OpTimes simulate(const Plan& plan, const plan::WeatherOfIteration& at) {
  return LaneSweep{plan, at}.run().or_throw();
}

}  // namespace longhaul::sim
