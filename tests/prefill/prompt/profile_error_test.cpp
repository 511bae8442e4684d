#include "prefill/prompt/profile_error.hpp"

#include <gtest/gtest.h>

namespace longhaul::prefill {
namespace {

ServedModel profiled(std::vector<PrefillPoint> points) {
  ServedModel model;
  model.profile = std::move(points);
  return model;
}

// Without 20 tokens the line from 100 to 600 ns says 267 where 200 stands, without 40 that from 200
// to 900 says 433 where 600 does.
TEST(LeaveOneOut, PredictsEachSizeFromItsNeighbours) {
  const auto error = leave_one_out(profiled({{10, 100ns}, {20, 200ns}, {40, 600ns}, {80, 900ns}}));
  ASSERT_TRUE(error.has_value());
  EXPECT_EQ(error->sizes, 2);
  EXPECT_NEAR(error->mean, ((267.0 / 200 - 1) + (1 - 433.0 / 600)) / 2, 1e-9);
  EXPECT_NEAR(error->worst, 267.0 / 200 - 1, 1e-9);
}

TEST(LeaveOneOut, OfALineNothingIsOff) {
  EXPECT_EQ(leave_one_out(profiled({{1, 10ns}, {2, 20ns}, {8, 80ns}}))->mean, 0);
}

TEST(LeaveOneOut, NeedsThreeSizes) {
  EXPECT_FALSE(leave_one_out(profiled({{1, 10ns}, {2, 20ns}})).has_value());
  EXPECT_FALSE(leave_one_out(profiled({})).has_value());
}

}  // namespace
}  // namespace longhaul::prefill
