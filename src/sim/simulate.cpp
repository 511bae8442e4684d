#include "sim/simulate.hpp"

#include "sim/lane_sweep.hpp"

namespace longhaul {

OpTimes simulate(const Plan& plan) { return LaneSweep{plan}.run(); }

OpTimes simulate(const Plan& plan, const WeatherOfIteration& at) {
  return LaneSweep{plan, at}.run();
}

}  // namespace longhaul
