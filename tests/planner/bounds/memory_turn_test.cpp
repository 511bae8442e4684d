#include "planner/bounds/memory_turn.hpp"

#include <algorithm>

#include <gtest/gtest.h>

#include "base/random.hpp"
#include "planner/bounds/bounds.hpp"
#include "planner/search/makespan.hpp"
#include "schedule/csv/csv.hpp"
#include "schedule/validity/validity.hpp"

namespace longhaul::planner {
namespace {

/// Gradients that release the smaller half of an odd activation, and long weights: after the
/// first gradient, F 9 comes ahead of any weight, paid for by 4 gradients (of m 1 to 4).
constexpr const char* kOddActivations = R"(# longhaul schedule 1
# name = "odd"
# devices = 2
# chunks = 2
# microbatches = 10
# replicas = 1
# device_of_chunk = 0,1
0F0,0F1,0F2,0F3,0F4,0F5,0F6,0F7,0I0,0I1,0I2,0F8,0I3,0I4,0F9,0B5,0B6,0W0,0W1,0W2,0W3,0W4,0B7,0B8,0B9
1F0,1I0,1F1,1F2,1F3,1F4,1B1,1B2,1F5,1F6,1F7,1B3,1I4,1I5,1B6,1B7,1W0,1W4,1F8,1I8,1W5,1F9,1B9,1W8
)";

TEST(MemoryTurn, ManyGradientsMayReleaseForOneForward) {
  Scenario scenario = spread(uniform_scenario(2, 10), 2, Duration{5'000'000}, {});
  scenario.costs.forward = {1'000ns, 1'000ns};
  scenario.costs.dgrad = {10'000ns, 1'000ns};
  scenario.costs.wgrad = {1'000'000ns, 1'000ns};
  scenario.costs.backward = {1'010'000ns, 2'000ns};
  scenario.costs.activation.assign(2, Bytes{1001});
  scenario.costs.message.assign(2, Bytes{1});
  scenario.memory.budget = 4;
  const Schedule schedule = schedule::read_csv(kOddActivations, "test", "odd");
  ASSERT_FALSE(schedule::first_violation(schedule, scenario));
  EXPECT_EQ(makespan_of(schedule, scenario), 22'056'000ns);
  EXPECT_LE(lower_bound(schedule, scenario).lower_bound, 22'056'000ns);
}

/// The cheapest release found by trying all numbers of blocks up to `most`.
Duration cheapest(const RelaxedChunk& chunk, std::int64_t missing, int most) {
  Duration least = Duration::max();
  for (int gradients = 0; gradients <= most; ++gradients) {
    for (int weights = 0; weights <= gradients + 1; ++weights) {
      const Bytes released = (chunk.taken - chunk.rest) * gradients + chunk.rest * weights;
      if (released.count() < missing) continue;
      least = std::min(least, gradients * chunk.gradient + weights * chunk.weight);
    }
  }
  return least;
}

// With every gradient's head at 0, F number k comes when the argument of the header says, for every
// i that it is made for: i = k - n, and i = 0, whose chain of steps may be lower but never higher.
TEST(MemoryTurn, IsNeverAboveTheCheapestRelease) {
  for (std::uint64_t seed = 1; seed <= 2000; ++seed) {
    Random random{seed};
    RelaxedChunk chunk;
    chunk.forward = Duration{random.between(0, 50)};
    chunk.gradient = Duration{random.between(0, 50)};
    chunk.weight = Duration{random.between(0, 500)};
    chunk.taken = Bytes{random.between(1, 12)};
    const bool recomputed = random.between(0, 3) == 0;
    chunk.rest = recomputed ? Bytes{} : chunk.taken - chunk.taken / 2;
    const Bytes limit{random.between(chunk.taken.count(), 5 * chunk.taken.count())};
    MemoryTurn turn{chunk, limit};
    const std::vector<Duration> heads(12, Duration::zero());
    const std::int64_t fitting = limit.count() / chunk.taken.count();
    const std::int64_t spare = limit.count() % chunk.taken.count();
    for (std::int64_t k = 0; k < 10; ++k) {
      const Duration start = turn.earliest_start(static_cast<std::size_t>(k), heads);
      if (k < fitting) {
        EXPECT_EQ(start, Duration::zero());
        continue;
      }
      Duration longest{};
      for (std::int64_t i = 0; i <= k - fitting; ++i) {
        const std::int64_t steps = k - fitting - i;
        const std::int64_t missing = chunk.rest.count() - spare + steps * chunk.taken.count();
        longest = std::max(longest,
                           chunk.gradient + steps * chunk.forward + cheapest(chunk, missing, 40));
      }
      EXPECT_LE(start, longest) << "seed " << seed << " k " << k;
      if (k <= fitting + 1) {
        EXPECT_EQ(start, longest) << "seed " << seed;
      }
    }
  }
}

}  // namespace
}  // namespace longhaul::planner
