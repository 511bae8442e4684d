#include "sim/simulate.hpp"

#include "sim/sweep.hpp"

namespace longhaul {

OpTimes simulate(const Plan& plan) { return Sweep{plan}.run(); }

}  // namespace longhaul
