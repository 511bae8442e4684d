#include "engine/links/link_table.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "harness/profile/plan_builder.hpp"

namespace longhaul::engine {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

constexpr Duration kAny{1};

/// A table over `plan`, in memory of its own.
class LinkTables {
public:
  explicit LinkTables(const Plan& plan)
      : plan_{plan}, memory_(LinkTable::bytes(plan)), table_{plan, memory_.data(), true} {}
  std::vector<OpId> request(OpId send, std::int64_t ready) {
    std::vector<OpId> granted;
    table_.request(send, TimePoint{ready}, granted);
    return granted;
  }
  bool granted(OpId send) { return table_.take(plan_.op(send).lane, last_); }
  std::vector<OpId> release(OpId send, std::int64_t due) {
    std::vector<OpId> woken;
    table_.release(send, TimePoint{due}, woken);
    return woken;
  }
  [[nodiscard]] const LinkTable::Grant& last() const { return last_; }

private:
  const Plan& plan_;
  std::vector<std::byte> memory_;
  LinkTable table_;
  LinkTable::Grant last_;
};

TEST(LinkTable, GivesAFreeLinkAtOnce) {
  harness::PlanBuilder builder{"one", 2};
  const auto message = builder.message(0, 1, kAny, {}, {});
  const Plan plan = builder.build();
  LinkTables table{plan};
  table.request(builder.id(message.send), 5);
  EXPECT_TRUE(table.granted(builder.id(message.send)));
  EXPECT_EQ(table.last().holder, kNone<OpId>);
  EXPECT_FALSE(table.granted(builder.id(message.send))) << "a grant is taken once";
}

class SharedLink : public ::testing::Test {
protected:
  SharedLink() {
    for (int from = 0; from < 3; ++from)
      handles_.push_back(builder_.message(from, 3, kAny, {}, {}, {"link a>b"}).send);
    plan_ = builder_.build();
  }
  [[nodiscard]] OpId send(std::size_t rank) const { return builder_.id(handles_[rank]); }

  harness::PlanBuilder builder_{"shared", 4};
  std::vector<harness::PlanBuilder::Handle> handles_;
  Plan plan_;
};

TEST_F(SharedLink, ServesInOrderOfReadinessNotOfAsking) {
  LinkTables table{plan_};
  table.request(send(0), 1);
  ASSERT_TRUE(table.granted(send(0)));
  table.request(send(2), 7);
  table.request(send(1), 6);
  EXPECT_FALSE(table.granted(send(1)));
  EXPECT_THAT(table.release(send(0), 20), ElementsAre(send(1)));
  EXPECT_FALSE(table.granted(send(2)));
  EXPECT_TRUE(table.granted(send(1)));
  EXPECT_EQ(table.last().free, TimePoint{20});
  EXPECT_EQ(table.last().holder, send(0));
  EXPECT_THAT(table.release(send(1), 30), ElementsAre(send(2)));
}

TEST_F(SharedLink, BreaksTiesByOpId) {
  LinkTables table{plan_};
  table.request(send(0), 1);
  table.request(send(2), 5);
  table.request(send(1), 5);
  EXPECT_THAT(table.release(send(0), 9), ElementsAre(send(1)));
}

TEST_F(SharedLink, KeepsAStatedOrderIterationAfterIteration) {
  plan_.resources.front().order = {send(2), send(0), send(1)};
  LinkTables table{plan_};
  for (int iteration = 0; iteration < 2; ++iteration) {
    table.request(send(0), 1);
    table.request(send(1), 1);
    EXPECT_FALSE(table.granted(send(0)));
    table.request(send(2), 9);
    EXPECT_TRUE(table.granted(send(2)));
    EXPECT_THAT(table.release(send(2), 10), ElementsAre(send(0)));
    EXPECT_TRUE(table.granted(send(0)));
    EXPECT_THAT(table.release(send(0), 11), ElementsAre(send(1)));
    EXPECT_TRUE(table.granted(send(1)));
    EXPECT_THAT(table.release(send(1), 12), IsEmpty());
  }
}

TEST_F(SharedLink, HoldsAsManyAsItsCapacity) {
  plan_.resources.front().capacity = 2;
  LinkTables table{plan_};
  for (std::size_t rank : {0U, 1U, 2U}) table.request(send(rank), static_cast<std::int64_t>(rank));
  EXPECT_TRUE(table.granted(send(0)));
  EXPECT_TRUE(table.granted(send(1)));
  EXPECT_FALSE(table.granted(send(2)));
  EXPECT_THAT(table.release(send(1), 4), ElementsAre(send(2)));
}

TEST_F(SharedLink, OneOfSeveralPlacesIsFreeSinceItsOwnHolderLeft) {
  plan_.resources.front().capacity = 2;
  LinkTables table{plan_};
  table.request(send(0), 1);
  ASSERT_TRUE(table.granted(send(0)));
  EXPECT_THAT(table.release(send(0), 40), IsEmpty());
  table.request(send(1), 50);
  ASSERT_TRUE(table.granted(send(1)));
  EXPECT_EQ(table.last().holder, kNone<OpId>) << "the other place was never held";
  table.request(send(2), 60);
  ASSERT_TRUE(table.granted(send(2)));
  EXPECT_EQ(table.last().free, TimePoint{40});
  EXPECT_EQ(table.last().holder, send(0));
}

TEST_F(SharedLink, KeepsAStatedOrderInSeveralPlaces) {
  plan_.resources.front().capacity = 2;
  plan_.resources.front().order = {send(2), send(0), send(1)};
  LinkTables table{plan_};
  for (int iteration = 0; iteration < 2; ++iteration) {
    table.request(send(1), 1);
    table.request(send(0), 2);
    EXPECT_FALSE(table.granted(send(0))) << "a place is free, but it is another's turn";
    EXPECT_THAT(table.request(send(2), 9), ElementsAre(send(2), send(0))) << "both are to be woken";
    EXPECT_TRUE(table.granted(send(2)));
    EXPECT_TRUE(table.granted(send(0)));
    EXPECT_FALSE(table.granted(send(1)));
    EXPECT_THAT(table.release(send(0), 10), ElementsAre(send(1)));
    EXPECT_TRUE(table.granted(send(1)));
    EXPECT_THAT(table.release(send(2), 12), IsEmpty());
    EXPECT_THAT(table.release(send(1), 13), IsEmpty());
  }
}

TEST(LinkTable, TakesAllResourcesTogetherAndIsNotOvertaken) {
  harness::PlanBuilder builder{"interfaces", 4};
  const auto a = builder.message(0, 3, kAny, {}, {}, {"egress a"}).send;
  const auto both = builder.message(1, 3, kAny, {}, {}, {"egress a", "ingress b"}).send;
  const auto b = builder.message(2, 3, kAny, {}, {}, {"ingress b"}).send;
  const Plan plan = builder.build();
  LinkTables table{plan};
  table.request(builder.id(a), 1);
  table.request(builder.id(both), 2);
  table.request(builder.id(b), 3);
  EXPECT_TRUE(table.granted(builder.id(a)));
  EXPECT_FALSE(table.granted(builder.id(both)));
  EXPECT_FALSE(table.granted(builder.id(b))) << "it would delay one that was ready before it";
  EXPECT_THAT(table.release(builder.id(a), 8), ElementsAre(builder.id(both)));
  EXPECT_THAT(table.release(builder.id(both), 9), ElementsAre(builder.id(b)));
}

}  // namespace
}  // namespace longhaul::engine
