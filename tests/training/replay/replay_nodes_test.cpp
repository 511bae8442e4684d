#include "training/replay/replay_nodes.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/error.hpp"

namespace longhaul::training {
namespace {

using ::testing::ElementsAre;

TEST(ReplayNodes, SumTheGradientsOfTheirReplicasInOrder) {
  const std::vector<int> leaders{0, 1, 0, 3, 1};
  const ReplayNodes nodes{leaders, 5};
  EXPECT_THAT(nodes.members(), ElementsAre(0, 1, 3));
  EXPECT_THAT(nodes.of_members(std::vector{7, 7, 7, 9, 7}), ElementsAre(7, 7, 9));
  EXPECT_EQ(nodes.place(ReplicaId{3}), 2U);
  EXPECT_EQ(nodes.place(ReplicaId{4}), std::nullopt);
  const std::vector<std::vector<float>> gradients{{1, 2}, {10, 20}, {3, 4}, {5, 6}, {30, 40}};
  const std::vector<std::span<const float>> views(gradients.begin(), gradients.end());
  EXPECT_THAT(nodes.sums(views),
              ElementsAre(ElementsAre(4, 6), ElementsAre(40, 60), ElementsAre(5, 6)));
}

TEST(ReplayNodes, WithoutLeadersAreReplicas) {
  const ReplayNodes nodes{{}, 3};
  EXPECT_THAT(nodes.members(), ElementsAre(0, 1, 2));
  EXPECT_EQ(nodes.place(ReplicaId{2}), 2U);
}

TEST(ReplayNodes, RefuseLeadersThatAreLed) {
  EXPECT_THROW((ReplayNodes{std::vector{0, 0, 1}, 3}), Error);
  EXPECT_THROW((ReplayNodes{std::vector{1, 1}, 2}), Error);
  EXPECT_THROW((ReplayNodes{std::vector{0, 0}, 3}), Error);
}

}  // namespace
}  // namespace longhaul::training
