#include <array>
#include <functional>
#include <vector>

#include <gtest/gtest.h>

#include "schedule/evaluator.hpp"
#include "schedule/generate.hpp"
#include "schedule/scenarios.hpp"
#include "schedule/validity.hpp"

/// The greedy generators against published values: two datacenters, latency L on the middle
/// boundary, no transfer time, F=D=W=100.
namespace longhaul {
namespace {

using test::evaluate;
using test::two_datacenters;

struct Known {
  int stages;
  int microbatches;
  double budget;
  int latency_ns;
  int makespan_ns;
};

Scenario scenario_of(const Known& known) {
  Scenario scenario = two_datacenters(known.stages, known.microbatches, Duration{known.latency_ns});
  scenario.memory.budget = known.budget;
  return scenario;
}

Duration makespan_of(const char* name, const Scenario& scenario) {
  const Schedule schedule = generate(name, scenario);
  const auto found = first_violation(schedule, scenario);
  EXPECT_FALSE(found) << found->text;
  const auto result = evaluate(schedule, scenario);
  EXPECT_TRUE(result) << "deadlock";
  return result ? result->makespan : Duration::zero();
}

/// Values of the greedy that CrossPipe's authors published.
constexpr std::array kCrossUd{
    Known{4, 8, 1, 0, 2700},   Known{4, 8, 1, 50, 3000},   Known{4, 8, 1, 100, 3100},
    Known{4, 8, 1, 200, 3500}, Known{4, 8, 1, 400, 4300},  Known{4, 8, 2, 0, 2700},
    Known{4, 8, 2, 50, 2750},  Known{4, 8, 2, 100, 2800},  Known{4, 8, 2, 200, 2900},
    Known{4, 8, 2, 400, 3100}, Known{8, 16, 1, 400, 7100}, Known{8, 16, 2, 400, 5900}};

TEST(CrossUd, ComesWithinThreePercentOfThePublishedGreedy) {
  for (const Known& known : kCrossUd) {
    const Duration makespan = makespan_of("cross-ud", scenario_of(known));
    EXPECT_LE(makespan.count() * 100, std::int64_t{known.makespan_ns} * 103)
        << known.stages << " stages, budget " << known.budget << ", latency " << known.latency_ns;
  }
}

/// Proven with a solver for one stage a device and memory P.
constexpr std::array kOptimal{Known{4, 8, 1, 0, 2700}, Known{4, 8, 1, 50, 2900},
                              Known{4, 8, 1, 100, 3100}, Known{4, 8, 1, 200, 3500},
                              Known{4, 8, 1, 400, 4300}};

TEST(CrossUd, IsNeverBelowAProvenOptimum) {
  for (const Known& known : kOptimal) {
    EXPECT_GE(makespan_of("cross-ud", scenario_of(known)), Duration{known.makespan_ns})
        << "latency " << known.latency_ns;
  }
}

}  // namespace
}  // namespace longhaul
