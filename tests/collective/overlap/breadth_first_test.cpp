#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "collective/overlap/rewrites.hpp"
#include "scenario/scenario.hpp"
#include "schedule/generators/generate.hpp"

namespace longhaul::collective {
namespace {

using ::testing::ElementsAre;

std::vector<std::string> row(const Schedule& schedule, int device) {
  std::vector<std::string> texts;
  for (const Block& block : schedule.row(ReplicaId{0}, DeviceId{device}))
    texts.push_back(fmt::format("{}{}.{}", to_string(block.kind), block.chunk, block.microbatch));
  return texts;
}

TEST(BreadthFirst, RunsAllMicrobatchesOfAChunkTogether) {
  const Scenario scenario = uniform_scenario(2, 2);
  const Schedule loop = breadth_first(schedule::generate("interleaved-1f1b", scenario));
  EXPECT_THAT(row(loop, 0),
              ElementsAre("F0.0", "F0.1", "F2.0", "F2.1", "B2.0", "B2.1", "B0.0", "B0.1"));
  const Schedule split = breadth_first(schedule::generate("zb-h1", scenario));
  EXPECT_THAT(row(split, 1), ElementsAre("F1.0", "F1.1", "D1.0", "W1.0", "D1.1", "W1.1"));
}

}  // namespace
}  // namespace longhaul::collective
