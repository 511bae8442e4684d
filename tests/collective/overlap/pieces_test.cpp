#include "collective/overlap/pieces.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "support/overlaps.hpp"

namespace longhaul::collective {
namespace {

using testing::centauri_toy;
using ::testing::ElementsAre;
using testing::planned_iteration;

TEST(Pieces, OfAnOperationWaitForTheirsAndAddUp) {
  IterationPlan plan = planned_iteration(centauri_toy(), "zero3");
  StageWork& work = plan.stages[DeviceId{0}];
  const CommunicationId gather = work.issue.front();
  const OperationId first = work.order.front();
  cut_with_operation(work, gather, 3, 7us);
  std::vector<Duration> times;
  for (int i = 0; i < 3; ++i) times.push_back(work.operations[work.order[to_size(i)]].duration);
  EXPECT_THAT(times, ElementsAre(Duration{666'668}, Duration{673'666}, Duration{673'666}));
  std::vector<Bytes> sizes;
  for (int i = 0; i < 3; ++i) {
    const Communication& piece = work.communications[work.issue[to_size(i)]];
    sizes.push_back(piece.size);
    EXPECT_THAT(piece.needed_by, ElementsAre(work.order[to_size(i)]));
  }
  EXPECT_THAT(sizes, ElementsAre(Bytes{666'667}, Bytes{666'667}, Bytes{666'666}));
  EXPECT_EQ(work.order.front(), first);
  EXPECT_THAT(work.operations[work.order[3]].needs, ElementsAre(work.order[2]));
  EXPECT_EQ(work.operations[work.order[2]].piece, 2);
  EXPECT_EQ(work.operations[work.order[2]].pieces, 3);
}

TEST(Pieces, HaveAByteAtLeast) {
  IterationPlan plan = planned_iteration(centauri_toy(), "zero3");
  StageWork& work = plan.stages[DeviceId{0}];
  const std::size_t operations = work.order.size();
  work.communications[work.issue.front()].size = Bytes{1};
  cut_with_operation(work, work.issue.front(), 4, {});
  EXPECT_EQ(work.order.size(), operations);
}

}  // namespace
}  // namespace longhaul::collective
