#include "planner/search/makespan.hpp"

#include <algorithm>

#include "plan/lowering/lower.hpp"
#include "sim/simulate.hpp"

namespace longhaul {

Duration makespan_of(const Schedule& schedule, const Scenario& scenario, Arrangement arrangement) {
  Duration last{};
  for (const OpTime& time : simulate(lower(schedule, scenario, arrangement)))
    last = std::max(last, time.end);
  return last;
}

}  // namespace longhaul
