#include "sim/simulate.hpp"

#include "sim/sweep.hpp"

namespace longhaul {

OpTimes simulate(const Plan& plan) { return Sweep{plan}.run(); }

OpTimes simulate(const Plan& plan, const WeatherOfIteration& at) { return Sweep{plan, at}.run(); }

}  // namespace longhaul
