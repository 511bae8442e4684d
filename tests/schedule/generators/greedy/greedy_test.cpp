#include <array>
#include <span>
#include <string>

#include <gtest/gtest.h>

#include "schedule/evaluator.hpp"
#include "schedule/generators/generate.hpp"
#include "schedule/scenarios.hpp"
#include "schedule/validity/validity.hpp"

/// The greedy generators against published values: two datacenters, latency L on the middle
/// boundary, no transfer time, F=D=W=100.
namespace longhaul::schedule {
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
  Scenario scenario =
      test::two_datacenters(known.stages, known.microbatches, Duration{known.latency_ns});
  scenario.memory.budget = known.budget;
  return scenario;
}

Duration makespan_of(const char* name, const Scenario& scenario) {
  const Schedule schedule = generate(name, scenario);
  const auto found = first_violation(schedule, scenario);
  EXPECT_FALSE(found) << found->text;
  const auto result = test::evaluate(schedule, scenario);
  EXPECT_TRUE(result) << "deadlock";
  return result ? result->makespan : Duration::zero();
}

/// Values of the greedy that CrossPipe's authors published.
constexpr std::array kCrossUd{
    Known{4, 8, 1, 0, 2700},   Known{4, 8, 1, 50, 3000},   Known{4, 8, 1, 100, 3100},
    Known{4, 8, 1, 200, 3500}, Known{4, 8, 1, 400, 4300},  Known{4, 8, 2, 0, 2700},
    Known{4, 8, 2, 50, 2750},  Known{4, 8, 2, 100, 2800},  Known{4, 8, 2, 200, 2900},
    Known{4, 8, 2, 400, 3100}, Known{8, 16, 1, 400, 7100}, Known{8, 16, 2, 400, 5900}};

constexpr std::array kCrossWave{Known{4, 8, 1, 0, 2600},   Known{4, 8, 1, 50, 2750},
                                Known{4, 8, 1, 100, 3000}, Known{4, 8, 1, 200, 3650},
                                Known{4, 8, 1, 400, 5150}, Known{8, 16, 1, 400, 7450}};

void expect_at_most(const char* name, std::span<const Known> published) {
  for (const Known& known : published) {
    EXPECT_LE(makespan_of(name, scenario_of(known)), Duration{known.makespan_ns})
        << name << ", " << known.stages << " stages, budget " << known.budget << ", latency "
        << known.latency_ns;
  }
}

TEST(CrossUd, IsAsGoodAsThePublishedGreedy) { expect_at_most("cross-ud", kCrossUd); }

TEST(CrossWave, IsAsGoodAsThePublishedGreedy) { expect_at_most("cross-wave", kCrossWave); }

/// Ours, as docs/schedules.md shows them where they are better or nothing was published.
constexpr std::array kOurWave{Known{4, 8, 1, 0, 2550},   Known{4, 8, 1, 50, 2700},
                              Known{4, 8, 1, 100, 2950}, Known{4, 8, 1, 200, 3550},
                              Known{4, 8, 1, 400, 4850}, Known{8, 16, 1, 400, 7150}};
constexpr std::array kOurLoop{Known{4, 8, 1, 0, 2550},   Known{4, 8, 1, 50, 2750},
                              Known{4, 8, 1, 100, 3150}, Known{4, 8, 1, 200, 4350},
                              Known{4, 8, 1, 400, 6750}, Known{8, 16, 1, 400, 8750}};

TEST(CrossWaveAndLoop, AreAsGoodAsDocumented) {
  expect_at_most("cross-wave", kOurWave);
  expect_at_most("cross-loop", kOurLoop);
}

/// Proven with a solver for one stage a device and memory P.
constexpr std::array kOptimal{Known{4, 8, 1, 0, 2700}, Known{4, 8, 1, 50, 2900},
                              Known{4, 8, 1, 100, 3100}, Known{4, 8, 1, 200, 3500},
                              Known{4, 8, 1, 400, 4300}};

// Below them would be a fault of the model.
TEST(CrossUd, ReachesTheProvenOptimaAndGoesNoLower) {
  for (const Known& known : kOptimal) {
    EXPECT_EQ(makespan_of("cross-ud", scenario_of(known)), Duration{known.makespan_ns})
        << "latency " << known.latency_ns;
  }
}

/// Text of a row: "F0 W1.0/2", chunk numbers left out.
std::string row_text(std::span<const Block> row) {
  std::string text;
  for (const Block& block : row) {
    if (!text.empty()) text += ' ';
    text += longhaul::to_string(block.kind) + std::to_string(block.microbatch);
    if (block.parts > 1) {
      text += '.' + std::to_string(block.part) + '/' + std::to_string(block.parts);
    }
  }
  return text;
}

// Memory for one microbatch leaves device 0 one order; the four parts of a W follow each other in
// it.
TEST(CrossUdSub, PutsPartsTogetherWhereNothingIsLost) {
  Scenario scenario = uniform_scenario(2, 2);
  scenario.memory.budget = 0.5;
  EXPECT_EQ(row_text(generate("cross-ud-sub", scenario).row(ReplicaId{0}, DeviceId{0})),
            "F0 D0 W0 F1 D1 W1");
}

// Device 1 is done with D0 at 250 and has F1 at 300. A whole W0 would end at 350 and D1 50 later;
// half of it fits, and cannot be moved to the other half without moving the end of the row.
TEST(CrossUdSub, LeavesAWForABlockThatOthersWaitFor) {
  Scenario scenario = uniform_scenario(2, 2);
  scenario.parallel.sub_blocks = 2;
  scenario.costs.forward = {Duration{150}, Duration{50}};
  scenario.costs.dgrad = {Duration{50}, Duration{50}};
  const Schedule parts = generate("cross-ud-sub", scenario);
  EXPECT_EQ(row_text(parts.row(ReplicaId{0}, DeviceId{1})), "F0 D0 W0.0/2 F1 D1 W0.1/2 W1");
}

}  // namespace
}  // namespace longhaul::schedule
