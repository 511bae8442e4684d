#include "engine/payloads/sent_sizes.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "harness/profile/plan_builder.hpp"
#include "plan/lowering/lower_collective.hpp"
#include "support/collectives.hpp"

namespace longhaul::engine {
namespace {

constexpr Bytes kNoCap{std::int64_t{1} << 40};

/// Five messages of rank 0 to rank 1: of 300 bytes, and smaller ones.
Plan five_messages() {
  harness::PlanBuilder builder{"five", 3};
  for (const std::int64_t size : {100, 300, 50, 200, 100})
    (void)builder.message(0, 1, Duration{1}, {}, Bytes{size});
  return builder.build();
}

Plan ring(int members, Bytes size) {
  return plan::lower_collective(testing::flat(CollectiveKind::all_reduce, members, size,
                                              plan::CollectiveAlgorithm::ring),
                                testing::scenario_of({.gpus = members}))
      .or_throw();
}

TEST(SentSizes, AreCappedOrWhole) {
  const Plan plan = five_messages();
  const SentSizes capped = sent_sizes(plan, {Bytes{200}, kNoCap});
  EXPECT_EQ(capped.messages.sent, Bytes{200});
  EXPECT_EQ(capped.messages.nominal, Bytes{300});
  EXPECT_FALSE(capped.messages.is_whole());
  EXPECT_TRUE(capped.collectives.is_whole()) << "there are none";
  EXPECT_TRUE(sent_sizes(plan, {Bytes{300}, kNoCap}).messages.is_whole());
}

// A ring of 4 members sends quarters of the vector.
TEST(SentSizes, OfStepsFollowTheVectorThatIsKept) {
  const Plan plan = ring(4, Bytes{4'000'000});
  const SentSizes whole = sent_sizes(plan, {kNoCap, kNoCap});
  EXPECT_EQ(whole.collectives.nominal, Bytes{1'000'000});
  EXPECT_TRUE(whole.collectives.is_whole());
  EXPECT_EQ(whole.messages.nominal, Bytes{}) << "the pipeline has none";
  EXPECT_EQ(sent_sizes(plan, {Bytes{1000}, kNoCap}).collectives.sent, Bytes{1000});
  EXPECT_EQ(sent_sizes(plan, {kNoCap, Bytes{400'000}}).collectives.sent, Bytes{100'000});
  EXPECT_EQ(kept_vector(plan.stepped.front(), {Bytes{1000}, kNoCap}), Bytes{4000});
  EXPECT_EQ(kept_vector(plan.stepped.front(), {Bytes{1000}, Bytes{3000}}), Bytes{3000});
}

TEST(SentSizes, OfOneCallAreItsNumbers) {
  harness::PlanBuilder builder{"call", 2};
  (void)builder.collective(CollectiveKind::all_reduce, {0, 1}, Duration{1}, Bytes{1000});
  const Plan plan = builder.build();
  EXPECT_EQ(sent_sizes(plan, {Bytes{64}, kNoCap}).collectives.sent, Bytes{64});
  EXPECT_EQ(sent_sizes(plan, {Bytes{64}, kNoCap}).collectives.nominal, Bytes{1000});
  EXPECT_EQ(payload_memory(plan, Rank{0}, {Bytes{64}, kNoCap}), Bytes{2 * 64 + 2 * 64});
}

// Of what payloads are made (2), leaving and made ahead (4), coming (3), not compared yet (4), in
// messages of the cap.
TEST(PayloadMemory, IsThatOfTheMessagesThatAreUnderWay) {
  const Plan plan = five_messages();
  const SendCaps caps{Bytes{100}, kNoCap};
  EXPECT_EQ(payload_memory(plan, Rank{0}, caps), Bytes{(2 + 4 + 4) * 100});
  EXPECT_EQ(payload_memory(plan, Rank{1}, caps), Bytes{(2 + 3 + 4) * 100});
  EXPECT_EQ(payload_memory(plan, Rank{2}, caps), Bytes{2 * 100}) << "it sends and gets none";
  EXPECT_EQ(payload_memory(plan, Rank{2}, {Bytes{1000}, kNoCap}), Bytes{2 * 300});
}

TEST(PayloadMemory, HoldsAVectorAndWhatIsUnderWayOfIt) {
  const Plan plan = ring(4, Bytes{4'000'000});
  EXPECT_EQ(payload_memory(plan, Rank{2}, {Bytes{1'000'000}, kNoCap}), Bytes{3 * 4'000'000});
  EXPECT_EQ(payload_memory(plan, Rank{2}, {Bytes{1'000'000}, Bytes{400'000}}), Bytes{3 * 400'000});
}

}  // namespace
}  // namespace longhaul::engine
