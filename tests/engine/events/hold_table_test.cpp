#include "engine/events/hold_table.hpp"

#include <gtest/gtest.h>

#include "plan/plan_draft.hpp"

namespace longhaul::engine {
namespace {

using namespace std::chrono_literals;

/// Two ranks whose lanes hold one resource.
class HoldTableTest : public ::testing::Test {
protected:
  explicit HoldTableTest(Serve serve = Serve::order, std::uint32_t capacity = 1) {
    plan::PlanDraft draft{"two"};
    const ResourceId both = draft.add_resource("both", ResourceKind::shared_link, capacity, serve);
    for (const char* name : {"east", "west"}) {
      const Rank rank = draft.add_rank(name);
      (void)draft.add_block(draft.add_lane(rank, "compute", OpKind::compute, {both}), 10ns);
    }
    plan_ = draft.make();
    memory_.resize(HoldTable::bytes(plan_, 2));
    tables_.reserve(2);
    for (const std::size_t self : {std::size_t{0}, std::size_t{1}})
      tables_.emplace_back(plan_, memory_.data(), self == 0, 2, self);
  }
  HoldTable& of(std::size_t rank) { return tables_[rank]; }

  Plan plan_;
  std::vector<std::byte> memory_;
  std::vector<HoldTable> tables_;
};

TEST_F(HoldTableTest, ServesFromWhenItIsFreeOfThoseServedBefore) {
  const auto takes = [](Duration duration) {
    return [duration](TimePoint start) { return std::optional{start + duration}; };
  };
  EXPECT_EQ(of(0).serve(OpId{0}, TimePoint{5}, takes(10ns))->holder, kNone<OpId>);
  const auto second = of(1).serve(OpId{1}, TimePoint{7}, takes(10ns));
  ASSERT_TRUE(second);
  EXPECT_EQ(second->at, TimePoint{15});
  EXPECT_EQ(second->holder, OpId{0});
  // One that does not run then leaves it as it is.
  TimePoint would_start{};
  EXPECT_FALSE(of(0).serve(OpId{0}, TimePoint{9}, [&](TimePoint start) {
    would_start = start;
    return std::optional<TimePoint>{};
  }));
  EXPECT_EQ(would_start, TimePoint{25});
  EXPECT_EQ(of(1).serve(OpId{1}, TimePoint{9}, takes(1ns))->at, TimePoint{25});
}

class HoldTableChoiceTest : public HoldTableTest {
protected:
  HoldTableChoiceTest() : HoldTableTest{Serve::deadline} {}
};

TEST_F(HoldTableChoiceTest, IsTakenByOneAtATime) {
  EXPECT_TRUE(of(0).take_first(OpId{0}, {0, 0, 0}));
  EXPECT_FALSE(of(1).is_free(OpId{1}));
  EXPECT_FALSE(of(1).take_first(OpId{1}, {0, 0, 1}));
  of(0).let_go(OpId{0}, TimePoint{30});
  EXPECT_EQ(of(1).last_release(OpId{1}).at, TimePoint{30});
  EXPECT_EQ(of(1).last_release(OpId{1}).holder, OpId{0});
  EXPECT_TRUE(of(1).take_first(OpId{1}, {0, 0, 1}));
}

TEST_F(HoldTableChoiceTest, IsLeftToTheRankThatWantsItFirst) {
  of(0).want(ResourceId{0}, ChoiceKey{0, 1, 0});
  EXPECT_FALSE(of(1).take_first(OpId{1}, {0, 2, 1}));
  EXPECT_TRUE(of(1).take_first(OpId{1}, {0, 0, 1}));
  of(1).let_go(OpId{1}, TimePoint{1});
  of(0).want(ResourceId{0}, std::nullopt);
  EXPECT_TRUE(of(1).take_first(OpId{1}, {0, 2, 1}));
}

}  // namespace
}  // namespace longhaul::engine
