#include "harness/training/train_curve.hpp"

#include <gtest/gtest.h>

namespace longhaul::harness {
namespace {

using namespace std::chrono_literals;

// Iterations begin 10 ms apart, then 20, and end by times of their own: the second half counts, by
// starts.
TEST(TrainCurve, PeriodIsOfStartsInTheSecondHalf) {
  TrainCurve curve;
  EXPECT_EQ(curve.mean_period(), 0ms);
  curve.starts = {0ms, 10ms, 20ms, 40ms, 60ms, 80ms};
  curve.elapsed = {5ms, 35ms, 45ms, 50ms, 61ms, 200ms};
  EXPECT_EQ(curve.mean_period(), 20ms);
}

TEST(TrainCurve, ShareOfFreshParts) {
  TrainCurve curve;
  EXPECT_EQ(curve.fresh_share(), std::nullopt);
  curve.parts_met = 8;
  curve.parts_fresh = 6;
  EXPECT_EQ(curve.fresh_share(), 0.75);
}

}  // namespace
}  // namespace longhaul::harness
