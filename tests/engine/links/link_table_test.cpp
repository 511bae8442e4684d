#include "engine/links/link_table.hpp"

#include <thread>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <pthread.h>

#include "engine/links/shared_mutex.hpp"
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
  void ask(OpId send, std::int64_t ready) { table_.ask(send, TimePoint{ready}); }
  /// The first that has asked is served; who may begin thereby.
  std::vector<OpId> serve_first() {
    std::optional<Arbiter::Request> first;
    for (std::uint32_t lane = 0; lane < plan_.lanes.size(); ++lane) {
      const auto request = table_.first_request(LaneId{lane});
      if (request && (!first || *request < *first)) first = request;
    }
    std::vector<OpId> granted;
    if (first) table_.serve(OpId{first->op}, granted);
    return granted;
  }
  bool granted(OpId send) { return table_.take(send, last_); }
  std::vector<OpId> release(OpId send, std::int64_t due) {
    std::vector<OpId> woken;
    table_.release(send, TimePoint{due}, woken);
    return woken;
  }
  std::vector<OpId> release_seen(OpId send, std::int64_t due, std::int64_t seen, std::int64_t lag) {
    std::vector<OpId> woken;
    table_.release(send, TimePoint{due}, woken, {TimePoint{seen}, TimePoint{seen + lag}});
    return woken;
  }
  [[nodiscard]] const LinkTable::Grant& last() const { return last_; }
  /// A rank that ends with the lock in its hands: the table begins with it.
  void die_with_the_lock() {
    std::thread{[this] {
      pthread_mutex_lock(reinterpret_cast<pthread_mutex_t*>(memory_.data()));
    }}.join();
  }

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

// The shadow of a grant is that of the place that is let go, not of the time at which it was due.
TEST_F(SharedLink, HandsTheShadowOn) {
  LinkTables table{plan_};
  table.request(send(0), 1);
  EXPECT_TRUE(table.granted(send(0)));
  EXPECT_EQ(table.last().let_go.lag(), Duration::zero());
  table.request(send(1), 2);
  EXPECT_THAT(table.release_seen(send(0), 20, 25, 7), ElementsAre(send(1)));
  EXPECT_TRUE(table.granted(send(1)));
  EXPECT_EQ(table.last().free, TimePoint{20});
  EXPECT_EQ(table.last().let_go.seen, TimePoint{25});
  EXPECT_EQ(table.last().let_go.lag(), Duration{7});
}

// It may have been in the middle of a change.
TEST_F(SharedLink, IsNotUsedWhereItsOwnerDiedWithTheLock) {
  LinkTables table{plan_};
  table.request(send(0), 1);
  EXPECT_TRUE(table.granted(send(0)));
  table.die_with_the_lock();
  for (int again = 0; again < 3; ++again)
    EXPECT_THROW(table.request(send(1), 2), LinkTableError) << "nor by who comes later";
  EXPECT_THROW(table.release(send(0), 3), LinkTableError);
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

// Of three places one is held and one is kept for an op that waits for something else: the third is
// free.
TEST(LinkTable, KeepsOnePlaceForEachThatWaits) {
  harness::PlanBuilder builder{"places", 5};
  const auto busy = builder.message(0, 4, kAny, {}, {}, {"egress a"}).send;
  const auto holds = builder.message(1, 4, kAny, {}, {}, {"aggregate"}).send;
  const auto waits = builder.message(2, 4, kAny, {}, {}, {"egress a", "aggregate"}).send;
  const auto third = builder.message(3, 4, kAny, {}, {}, {"aggregate"}).send;
  Plan plan = builder.build();
  for (Resource& resource : plan.resources)
    if (resource.name == "aggregate") resource.capacity = 3;
  LinkTables table{plan};
  for (const auto send : {busy, holds, waits, third}) table.request(builder.id(send), 1);
  EXPECT_TRUE(table.granted(builder.id(holds)));
  EXPECT_FALSE(table.granted(builder.id(waits)));
  EXPECT_TRUE(table.granted(builder.id(third)));
  EXPECT_THAT(table.release(builder.id(busy), 8), ElementsAre(builder.id(waits)));
}

// What begins after it waited is bound by what it waited for, not by a place that was free before
// and kept for another.
TEST(LinkTable, TakesNoPlaceThatIsKeptForAnother) {
  harness::PlanBuilder builder{"places", 5};
  const auto busy = builder.message(0, 4, kAny, {}, {}, {"egress a"}).send;
  const auto holds = builder.message(1, 4, kAny, {}, {}, {"aggregate"}).send;
  const auto waits = builder.message(2, 4, kAny, {}, {}, {"egress a", "aggregate"}).send;
  const auto last = builder.message(3, 4, kAny, {}, {}, {"aggregate"}).send;
  Plan plan = builder.build();
  for (Resource& resource : plan.resources)
    if (resource.name == "aggregate") resource.capacity = 2;
  LinkTables table{plan};
  for (const auto send : {busy, holds, waits, last}) table.request(builder.id(send), 1);
  EXPECT_FALSE(table.granted(builder.id(last)));
  EXPECT_THAT(table.release(builder.id(holds), 7), ElementsAre(builder.id(last)));
  EXPECT_TRUE(table.granted(builder.id(last)));
  EXPECT_EQ(table.last().free, TimePoint{7});
  EXPECT_EQ(table.last().holder, builder.id(holds));
}

// The first in a stated order waits for something else. The next has its turn then, and a place of
// its own; the turn of the first is not lost.
TEST(LinkTable, AStatedOrderGoesOnWhenItsFirstWaits) {
  harness::PlanBuilder builder{"places", 4};
  const auto busy = builder.message(0, 3, kAny, {}, {}, {"egress a"}).send;
  const auto first = builder.message(1, 3, kAny, {}, {}, {"egress a", "aggregate"}).send;
  const auto next = builder.message(2, 3, kAny, {}, {}, {"aggregate"}).send;
  Plan plan = builder.build();
  for (Resource& resource : plan.resources) {
    if (resource.name != "aggregate") continue;
    resource.capacity = 2;
    resource.order = {builder.id(first), builder.id(next)};
  }
  LinkTables table{plan};
  for (const std::int64_t start : {0, 100}) {  // iterations
    table.request(builder.id(busy), start + 1);
    table.request(builder.id(next), start + 2);
    EXPECT_FALSE(table.granted(builder.id(next)));
    EXPECT_THAT(table.request(builder.id(first), start + 5), ElementsAre(builder.id(next)));
    EXPECT_TRUE(table.granted(builder.id(next)));
    EXPECT_EQ(table.last().free, TimePoint{start + 5}) << "its turn has come with the first";
    EXPECT_EQ(table.last().holder, builder.id(first));
    EXPECT_THAT(table.release(builder.id(busy), start + 8), ElementsAre(builder.id(first)));
    table.release(builder.id(first), start + 9);
    table.release(builder.id(next), start + 9);
  }
}

// The same where only one may hold it: who is next in the order was ready before, and waits.
TEST(LinkTable, AStatedOrderIsKeptWhileItsFirstWaits) {
  harness::PlanBuilder builder{"places", 4};
  const auto busy = builder.message(0, 3, kAny, {}, {}, {"egress a"}).send;
  const auto next = builder.message(1, 3, kAny, {}, {}, {"link"}).send;
  const auto first = builder.message(2, 3, kAny, {}, {}, {"egress a", "link"}).send;
  Plan plan = builder.build();
  for (Resource& resource : plan.resources)
    if (resource.name == "link") resource.order = {builder.id(first), builder.id(next)};
  LinkTables table{plan};
  table.request(builder.id(busy), 1);
  table.request(builder.id(next), 2);
  EXPECT_THAT(table.request(builder.id(first), 5), IsEmpty());
  EXPECT_THAT(table.release(builder.id(busy), 8), ElementsAre(builder.id(first)));
  EXPECT_THAT(table.release(builder.id(first), 9), ElementsAre(builder.id(next)));
}

TEST(LinkTable, SendsOfALaneAreServedInTurn) {
  harness::PlanBuilder builder{"lane", 3};
  const auto first = builder.message(0, 2, kAny, {}, {}, {"link a>b"}).send;
  const auto second = builder.message(0, 2, kAny, {}, {}, {"link a>b"}).send;
  const auto other = builder.message(1, 2, kAny, {}, {}, {"link a>b"}).send;
  const Plan plan = builder.build();
  LinkTables table{plan};
  EXPECT_THAT(table.request(builder.id(first), 5), ElementsAre(builder.id(first)));
  EXPECT_TRUE(table.granted(builder.id(first)));
  EXPECT_THAT(table.request(builder.id(other), 7), IsEmpty());
  EXPECT_THAT(table.request(builder.id(second), 6), IsEmpty());
  EXPECT_THAT(table.release(builder.id(first), 9), ElementsAre(builder.id(second)));
  EXPECT_THAT(table.release(builder.id(second), 11), ElementsAre(builder.id(other)));
}

TEST_F(SharedLink, GivesNothingToOneThatOnlyAsked) {
  LinkTables table{plan_};
  table.ask(send(2), 5);
  table.ask(send(1), 5);
  table.ask(send(0), 6);
  EXPECT_FALSE(table.granted(send(1)));
  EXPECT_THAT(table.serve_first(), ElementsAre(send(1)));
  EXPECT_THAT(table.serve_first(), IsEmpty()) << "served, and waits";
  EXPECT_THAT(table.release(send(1), 9), ElementsAre(send(2)));
  EXPECT_THAT(table.release(send(2), 10), IsEmpty()) << "not served yet";
  EXPECT_THAT(table.serve_first(), ElementsAre(send(0)));
  EXPECT_THAT(table.serve_first(), IsEmpty());
}

// Who was served keeps its place before one that asked later, though that was ready before.
TEST_F(SharedLink, WhoIsServedIsNotOvertaken) {
  LinkTables table{plan_};
  for (const std::size_t rank : {0U, 2U}) {
    table.ask(send(rank), 5);
    table.serve_first();
  }
  table.ask(send(1), 4);
  EXPECT_THAT(table.serve_first(), IsEmpty());
  EXPECT_THAT(table.release(send(0), 8), ElementsAre(send(2)));
  EXPECT_THAT(table.release(send(2), 9), ElementsAre(send(1)));
}

TEST_F(SharedLink, ServesAStatedOrder) {
  plan_.resources.front().order = {send(2), send(0), send(1)};
  LinkTables table{plan_};
  for (int iteration = 0; iteration < 2; ++iteration) {
    table.ask(send(0), 1);
    EXPECT_THAT(table.serve_first(), IsEmpty()) << "not its turn";
    table.ask(send(2), 9);
    EXPECT_THAT(table.serve_first(), ElementsAre(send(2)));
    EXPECT_THAT(table.serve_first(), IsEmpty()) << "its turn, but the link is held";
    EXPECT_THAT(table.release(send(2), 10), ElementsAre(send(0)));
    table.ask(send(1), 2);
    EXPECT_THAT(table.serve_first(), IsEmpty());
    EXPECT_THAT(table.release(send(0), 11), ElementsAre(send(1)));
    EXPECT_THAT(table.release(send(1), 12), IsEmpty());
  }
}

}  // namespace
}  // namespace longhaul::engine
