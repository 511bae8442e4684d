#include "plan/steps/line_steps.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/index.hpp"

namespace longhaul::plan {
namespace {

TEST(LineSteps, OfTwoTreesEachMemberHasChildrenInOne) {
  for (int members = 2; members <= 40; ++members) {
    const std::vector<int> one = binary_tree(members, 0);
    const std::vector<int> other = binary_tree(members, 1);
    std::vector<int> children_in_one(to_size(members), 0);
    std::vector<int> children_in_other(to_size(members), 0);
    for (int i = 0; i < members; ++i) {
      if (one[at(i)] >= 0) ++children_in_one[at(one[at(i)])];
      if (other[at(i)] >= 0) ++children_in_other[at(other[at(i)])];
    }
    int in_both = 0;
    for (int i = 0; i < members; ++i) {
      EXPECT_LE(children_in_one[at(i)], 2);
      EXPECT_LE(children_in_other[at(i)], 2);
      in_both += children_in_one[at(i)] > 0 && children_in_other[at(i)] > 0 ? 1 : 0;
    }
    EXPECT_LE(in_both, members % 2) << members;  // of an odd number, one is left over
  }
}

}  // namespace
}  // namespace longhaul::plan
