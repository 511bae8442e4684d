#include "prefill/play/expected_training.hpp"

#include <gtest/gtest.h>

#include "support/filled_stretches.hpp"

namespace longhaul::prefill {
namespace {

using testing::PlacedStretch;

// Messages over links without limits take no time: a ring of them starts and ends at one instant.
TEST(ExpectedTraining, IsThePlanBeforeAnythingHasEnded) {
  for (std::uint64_t seed = 1; seed <= 120; ++seed) {
    SCOPED_TRACE(seed);
    Random random{seed};
    const PlacedStretch stretch = testing::random_stretch(random);
    const TrainingGraph graph{stretch.plan, stretch.times, stretch.bubbles.gpus};
    ExpectedTraining expected{graph};
    ASSERT_EQ(expected.end({}), graph.makespan());
    for (std::int32_t rank = 0; rank < graph.gpus(); ++rank)
      for (std::size_t block = 0; block < expected.blocks(rank); ++block)
        ASSERT_EQ(expected.closes(rank, block, {}),
                  graph.nodes()[graph.blocks(rank)[block]].planned);
  }
}

// GPipe of two iterations, the second GPU's first block late by 50 ms, as its message was.
TEST(ExpectedTraining, GoesByThePlanOrByTheBubblesOfAnIterationBefore) {
  Scenario scenario = serving_scenario(2, 1, linear_model(1ms));
  scenario.costs.forward.assign(2, 100ms);
  scenario.costs.backward.assign(2, 200ms);
  scenario.costs.message.assign(2, Bytes{});
  const PlacedStretch stretch{scenario, "gpipe", 2};
  const TrainingGraph graph{stretch.plan, stretch.times, 2};
  const auto closes_after = [&](Signals signals, Duration late) {
    ExpectedTraining expected{graph, {signals, 2}};
    const auto& blocks = graph.blocks(0);
    // The first iteration: its backward begins at 500 ms as planned, or late.
    Duration shift{};
    for (std::size_t i = 0; i < 4; ++i) {
      if (i == 2) shift = late;
      const TrainingGraph::Node& node = graph.nodes()[blocks[i]];
      expected.heed(node.op, node.planned + node.hold + shift);
    }
    // Of the second its forwards are over, as late.
    for (std::size_t i = 4; i < 6; ++i) {
      const TrainingGraph::Node& node = graph.nodes()[blocks[i]];
      expected.heed(node.op, node.planned + node.hold + shift);
    }
    return expected.closes(0, 6, 1101ms + late);
  };
  EXPECT_EQ(closes_after(Signals::plan, 50ms), 1400ms) << "from the stretch's begin";
  EXPECT_EQ(closes_after(Signals::signals, 0ms), 1400ms);
  // Then it was idle for 350 ms, and its forwards of the second ended at 1,150 ms.
  EXPECT_EQ(closes_after(Signals::signals, 50ms), 1500ms);
}

}  // namespace
}  // namespace longhaul::prefill
