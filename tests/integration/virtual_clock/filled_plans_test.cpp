// Placed prompts in the bubbles of training: ranks play them, and training beside them, in the
// times that the simulator gives, which are those of the placement.
#include <gtest/gtest.h>

#include "base/index.hpp"
#include "played_plan.hpp"
#include "support/cells.hpp"
#include "support/filled_stretches.hpp"

namespace longhaul {
namespace {

/// Ops whose times or outcomes ranks and simulator do not agree on.
int differences(const Plan& plan, const OpResults& played, const OpResults& simulated) {
  int count = 0;
  for (std::size_t i = 0; i < plan.ops.size(); ++i) {
    const Outcome outcome = simulated.outcomes.empty() ? Outcome::ran : simulated.outcomes[i];
    const bool same = played.times[i].start == simulated.times[i].start &&
                      played.times[i].end == simulated.times[i].end &&
                      played.outcomes[i] == outcome;
    EXPECT_TRUE(same || count > 0) << to_text(plan, OpId{static_cast<std::uint32_t>(i)});
    count += same ? 0 : 1;
  }
  return count;
}

TEST(PlayedPrefills, TakeTheTimesOfThePlacementAndLeaveTrainingAlone) {
  std::size_t placed = 0;
  for (std::uint64_t seed = 1; seed <= 60; ++seed) {
    SCOPED_TRACE(seed);
    Random random{seed};
    const testing::PlacedStretch stretch = testing::random_stretch(random);
    const auto filled = stretch.fill(stretch.place(testing::random_requests(random)));
    const OpResults played = testing::play_stream(filled.plan, {}).iterations.front();
    ASSERT_EQ(differences(filled.plan, played, sim::simulate_results(filled.plan)), 0);
    for (std::size_t i = 0; i < stretch.times.size(); ++i)
      ASSERT_EQ(played.times[index(filled.training[i])].start, stretch.times[i].start);
    placed += filled.stages.size();
  }
  EXPECT_GT(placed, 400U);
}

// Keys and values go to a decode rank beside them, over interfaces that training's messages hold.
TEST(PlayedPrefills, SendKeysAndValuesAsSimulated) {
  std::size_t tokens = 0;
  int moved = 0;
  for (std::uint64_t seed = 200; seed < 240; ++seed) {
    SCOPED_TRACE(seed);
    Random random{seed};
    Scenario scenario = testing::random_serving_scenario(random);
    testing::send_keys_and_values(scenario, Bytes{100}, random);
    scenario.add_services({RankRole::decode, DatacenterId{0}, 1});
    const testing::PlacedStretch stretch{scenario, "1f1b", 2};
    const auto sending = seed % 2 == 0 ? prefill::KvSending::whole : prefill::KvSending::layerwise;
    const auto filled =
        stretch.fill(stretch.place(testing::random_requests(random)), {.kv = sending});
    const OpResults played = testing::play_stream(filled.plan, {}).iterations.front();
    ASSERT_EQ(differences(filled.plan, played, sim::simulate_results(filled.plan)), 0);
    for (std::size_t i = 0; i < stretch.times.size(); ++i)
      moved += played.times[index(filled.training[i])].start != stretch.times[i].start ? 1 : 0;
    tokens += filled.tokens.size();
  }
  EXPECT_GT(tokens, 200U);
  EXPECT_GT(moved, 0) << "slices are there to be waited for";
}

// A DP-cell's ranks relay for each other while they compute prompts.
TEST(PlayedPrefills, BesideRelayedMessages) {
  Scenario scenario = testing::cell_of(3, Bytes{120});
  scenario.parallel.microbatches = 4;
  scenario.served.push_back(prefill::linear_model(1ns));
  const testing::PlacedStretch stretch{
      scenario, testing::in_cells(schedule::generate("1f1b", scenario), scenario, 3), 2};
  std::vector<prefill::Request> requests;
  for (std::int64_t i = 0; i < 30; ++i) requests.push_back({i, Duration{20 * i}, 1 + 7 * i % 60});
  const auto filled = stretch.fill(stretch.place(requests));
  EXPECT_GT(filled.stages.size(), 10U);
  const OpResults played = testing::play_stream(filled.plan, {}).iterations.front();
  ASSERT_EQ(differences(filled.plan, played, sim::simulate_results(filled.plan)), 0);
  for (std::size_t i = 0; i < stretch.times.size(); ++i)
    ASSERT_EQ(played.times[index(filled.training[i])].end, stretch.times[i].end);
}

// Blocks take longer or shorter than planned: deadlines move by what has ended, on ranks as in the
// simulator.
TEST(PlayedPrefills, GoByTrainingAsItIs) {
  std::size_t declined = 0, moved = 0;
  for (std::uint64_t seed = 300; seed < 340; ++seed) {
    SCOPED_TRACE(seed);
    Random random{seed};
    const testing::PlacedStretch stretch = testing::random_stretch(random);
    auto filled = stretch.fill(stretch.place(testing::random_requests(random)));
    longhaul::Run run;
    run.noise = 0.1;
    run.seed = seed;
    for (const OpId id : filled.training) {
      Op& op = filled.plan.ops[index(id)];
      if (op.kind != OpKind::compute) continue;
      const DeviceId device = filled.plan.ranks[index(filled.plan.rank_of(id))].device;
      op.duration = scaled(op.duration, plan::block_time_factor(run, device, id, 0));
    }
    const OpResults simulated = sim::simulate_results(filled.plan);
    const OpResults played = testing::play_stream(filled.plan, {}).iterations.front();
    ASSERT_EQ(differences(filled.plan, played, simulated), 0);
    for (const prefill::FilledStage& stage : filled.stages) {
      const bool ran =
          simulated.outcomes.empty() || simulated.outcomes[index(stage.op)] == Outcome::ran;
      declined += ran ? 0 : 1;
      moved += ran && simulated.times[index(stage.op)].end > stage.placed.end() ? 1 : 0;
    }
  }
  EXPECT_GT(declined, 20U);
  EXPECT_GT(moved, 100U);
}

// What takes longer than estimated, and what does not give way.
TEST(PlayedPrefills, HarmTrainingAsPredicted) {
  int late = 0;
  for (std::uint64_t seed = 100; seed < 130; ++seed) {
    SCOPED_TRACE(seed);
    Random random{seed};
    const testing::PlacedStretch stretch = testing::random_stretch(random);
    auto filled = stretch.fill(stretch.place(testing::random_requests(random)),
                               {.manners = prefill::Manners::careless});
    const OpResults simulated = sim::simulate_results(filled.plan);
    const OpResults played = testing::play_stream(filled.plan, {}).iterations.front();
    ASSERT_EQ(differences(filled.plan, played, simulated), 0);
    for (std::size_t i = 0; i < stretch.times.size(); ++i)
      late += simulated.times[index(filled.training[i])].end > stretch.times[i].end ? 1 : 0;
  }
  EXPECT_GT(late, 100);
}

}  // namespace
}  // namespace longhaul
