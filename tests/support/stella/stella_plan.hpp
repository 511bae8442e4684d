#pragma once

#include "plan/lowering/lower.hpp"
#include "plan/plan.hpp"
#include "schedule/generators/generate.hpp"

namespace longhaul::testing {

inline Plan plan_of(const Scenario& scenario, const char* schedule = "stella") {
  return plan::lower(schedule::generate(schedule, scenario), scenario);
}

}  // namespace longhaul::testing
