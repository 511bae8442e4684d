#include "plan/steps/prove.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "support/collectives.hpp"

namespace longhaul::plan {
namespace {

using testing::flat;
using ::testing::HasSubstr;
using Algorithm = CollectiveAlgorithm;

// The checker sees what it is for: each way in which steps can be wrong.
TEST(Prove, FailsOnEachKindOfFault) {
  const CollectiveSteps right =
      steps_of(flat(CollectiveKind::all_reduce, 4, Bytes{64}, Algorithm::ring));
  ASSERT_FALSE(why_wrong(right));
  const auto reason = [](const CollectiveSteps& steps) {
    const auto why = why_wrong(steps);
    return why ? why->reason : "";
  };
  CollectiveSteps early = right;
  early.messages[4].after_count = 0;
  EXPECT_THAT(reason(early), HasSubstr("does not wait for message"));
  CollectiveSteps twice = right;
  twice.messages[5] = twice.messages[1];
  twice.messages[5].step = 1;
  EXPECT_THAT(reason(twice), HasSubstr("with a contribution that it has"));
  CollectiveSteps lacking = right;
  lacking.messages.pop_back();
  EXPECT_EQ(reason(lacking), "member 0 ends with 3 of 4 contributions to item 1.");
  CollectiveSteps lost = right;
  lost.messages[8].adds = false;
  lost.messages[4].adds = false;
  EXPECT_THAT(reason(lost), HasSubstr("without a contribution that it has"));
  CollectiveSteps nothing =
      steps_of(flat(CollectiveKind::broadcast, 4, Bytes{64}, Algorithm::tree));
  nothing.messages[0].from = 3;
  EXPECT_THAT(reason(nothing), HasSubstr("does not have it"));
}

}  // namespace
}  // namespace longhaul::plan
