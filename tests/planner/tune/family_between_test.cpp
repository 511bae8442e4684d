#include "planner/tune/family_between.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/random.hpp"

namespace longhaul::planner {
namespace {

using ::testing::ElementsAre;

FamilyMember member_of(const std::string& method, double wan_bytes, std::vector<int> updates,
                       int local_steps = 1) {
  FamilyMember member;
  member.method = method;
  member.local_steps = local_steps;
  member.wan_bytes = wan_bytes;
  int seed = 0;
  for (const int at : updates) member.curves.push_back({++seed, {{at / 2, 2.0}, {at, 1.0}}});
  return member;
}

std::vector<std::string> names_of(const std::vector<FamilyMember>& members) {
  std::vector<std::string> names;
  for (const FamilyMember& each : members) names.push_back(each.method);
  return names;
}

// The knob's logarithm: 4, 8, 16 lie a quarter each from 2 to 32.
TEST(FamilyBetween, DividesTheKnobsLogarithm) {
  const std::vector<FamilyMember> found =
      members_between({member_of("diloco:2", 1000, {100, 120}, 2), member_of("int8", 10, {1}),
                       member_of("diloco:32", 1000, {200, 240}, 32)});
  ASSERT_THAT(names_of(found), ElementsAre("diloco:4", "diloco:8", "diloco:16"));
  EXPECT_EQ(found[1].local_steps, 8);
  EXPECT_DOUBLE_EQ(found[1].between->share, 0.5);
  EXPECT_DOUBLE_EQ(found[1].wan_bytes, 1000);
  const UpdatesToLoss updates = updates_to(found[1], 1);
  EXPECT_DOUBLE_EQ(*updates.median, 165) << "half way between 110 and 220";
  EXPECT_EQ(updates.least, 50);
  EXPECT_EQ(updates.most, 240);
}

TEST(FamilyBetween, KeepsWhatStandsAroundTheKnob) {
  const std::vector<FamilyMember> found =
      members_between({member_of("topk:keep=0.01:exchange=sites", 100, {100}),
                       member_of("topk:keep=0.16:exchange=sites", 1600, {50})});
  ASSERT_THAT(names_of(found),
              ElementsAre("topk:keep=0.02:exchange=sites", "topk:keep=0.04:exchange=sites",
                          "topk:keep=0.08:exchange=sites"));
  EXPECT_NEAR(found[1].wan_bytes, 400, 1e-9) << "as many bytes as are kept";
}

// Blocks of 6 or 11 are none, nor are 8 or 16 bits, and a percent sign is no word.
TEST(FamilyBetween, ComposesMethodsAlone) {
  EXPECT_THAT(names_of(members_between({member_of("block:block=4", 300, {100}),
                                        member_of("block:block=16", 100, {200})})),
              ElementsAre("block:block=8"));
  EXPECT_THAT(names_of(members_between({member_of("block:block=1", 300, {100}),
                                        member_of("block:block=16", 100, {200})})),
              ElementsAre("block:block=2", "block:block=4", "block:block=8"));
  EXPECT_TRUE(members_between({member_of("streaming-diloco:8,2,1:bits=4", 10, {9}),
                               member_of("streaming-diloco:8,2,1:bits=32", 80, {9}),
                               member_of("topk:feedback=1", 1, {9}),
                               member_of("topk:seed=9", 1, {9}), member_of("topk:seed=1", 1, {9})})
                  .empty());
  const std::vector<FamilyMember> found =
      members_between({member_of("topk:keep=1%:share=each", 100, {100}),
                       member_of("topk:keep=16%:share=each", 1600, {50})});
  ASSERT_THAT(names_of(found), ElementsAre("topk:keep=2%:share=each", "topk:keep=4%:share=each",
                                           "topk:keep=8%:share=each"));
  EXPECT_NEAR(found[1].wan_bytes, 400, 1e-9);
}

// Two knobs at once, other exchanges, numbers that follow each other, local steps that no name
// says.
TEST(FamilyBetween, ComposesNothingElse) {
  FamilyMember late = member_of("powersgd:16", 10, {10});
  late.staleness = 1;
  FamilyMember in_fragments = member_of("localsgd:16", 10, {10});
  in_fragments.fragments = 2;
  EXPECT_TRUE(members_between({member_of("localsgd:2", 1, {10}), in_fragments,
                               member_of("a:1:x=1", 1, {10}), member_of("a:8:x=8", 1, {10}),
                               member_of("powersgd:2", 1, {10}), late, member_of("int:4", 1, {10}),
                               member_of("int:5", 1, {10}), member_of("s:1", 1, {10}, 2),
                               member_of("s:9", 1, {10}, 8), member_of("none", 1, {10})})
                  .empty());
}

// Whatever the loss and the curves: no pick is outside what its neighbours took.
TEST(FamilyBetween, IsNeverOutsideItsNeighboursInterval) {
  int compared = 0, reached = 0;
  for (std::uint64_t seed = 1; seed <= 200; ++seed) {
    SCOPED_TRACE(seed);
    Random random{seed};
    std::vector<FamilyMember> members;
    int knob = 0;
    for (int i = 0; i < 3; ++i) {
      knob += static_cast<int>(random.between(1, 30));
      FamilyMember member = member_of("diloco:" + std::to_string(knob),
                                      static_cast<double>(random.between(1, 1000)), {}, knob);
      for (int run = 1; run <= 3; ++run) {
        FamilyCurve curve{run, {}};
        for (int updates = 10; updates <= 100; updates += 10)
          curve.points.emplace_back(updates, static_cast<double>(random.between(1, 40)) / 10);
        member.curves.push_back(curve);
      }
      members.push_back(std::move(member));
    }
    for (const FamilyMember& each : members_between(members))
      for (const double loss : {0.1, 0.2, 0.5, 1.0}) {
        const UpdatesToLoss own = updates_to(each, loss);
        const UpdatesToLoss lower = updates_to(each.between->lower, loss);
        const UpdatesToLoss upper = updates_to(each.between->upper, loss);
        ++compared;
        EXPECT_GE(own.least, std::min(lower.least, upper.least));
        EXPECT_EQ(own.median.has_value(), lower.median && upper.median);
        if (!own.median) continue;
        ++reached;
        EXPECT_GE(*own.median, std::min(*lower.median, *upper.median));
        EXPECT_LE(*own.median, std::max(*lower.median, *upper.median));
        EXPECT_GE(*own.median, own.least);
        if (own.most) {
          EXPECT_LE(*own.most, std::max(*lower.most, *upper.most));
        }
        const auto [fewest, greatest] =
            std::minmax(each.between->lower.wan_bytes, each.between->upper.wan_bytes);
        EXPECT_GE(each.wan_bytes, fewest * (1 - 1e-12));
        EXPECT_LE(each.wan_bytes, greatest * (1 + 1e-12));
        EXPECT_GT(each.local_steps, each.between->lower.local_steps);
        EXPECT_LT(each.local_steps, each.between->upper.local_steps);
      }
  }
  EXPECT_GT(compared, 1000);
  EXPECT_GT(reached, 300);
}

}  // namespace
}  // namespace longhaul::planner
