#include "planner/tune/throughput.hpp"

#include <gtest/gtest.h>

#include "base/error.hpp"

namespace longhaul::planner {
namespace {

TEST(GpuSpeed, IsTheLawOfEquationTwo) {
  const GpuSpeed resnet{32, 118};
  EXPECT_EQ(resnet.samples_per_second(16), 59);
  EXPECT_EQ(resnet.seconds(16), 32.0 / 118);
  EXPECT_EQ(resnet.samples_per_second(64), 118);
}

TEST(FitThroughput, FindsAlphaAndBeta) {
  for (const GpuSpeed speed : {GpuSpeed{28, 300}, GpuSpeed{20, 99}, GpuSpeed{5, 12}}) {
    std::vector<ThroughputSample> samples;
    for (const double batch : {2.0, 4.0, 8.0, 16.0, 32.0, 64.0, 128.0})
      samples.push_back({batch, speed.samples_per_second(batch)});
    const GpuSpeed found = fit_throughput(samples);
    EXPECT_NEAR(found.alpha / speed.alpha, 1, 1e-3);
    EXPECT_NEAR(found.beta / speed.beta, 1, 1e-3);
  }
  EXPECT_THROW(static_cast<void>(fit_throughput({})), Error);
  const std::vector<ThroughputSample> none{{0, 1}};
  EXPECT_THROW(static_cast<void>(fit_throughput(none)), Error);
}

TEST(AdaptedBandwidth, GrowsWhereRanksAreBusyAndFallsByTheirIdleTime) {
  EXPECT_DOUBLE_EQ(adapted_bandwidth(100, 0.04), 110);
  EXPECT_DOUBLE_EQ(adapted_bandwidth(100, 0.05), 95);
  EXPECT_DOUBLE_EQ(adapted_bandwidth(100, 0.2), 80);
  EXPECT_DOUBLE_EQ(adapted_bandwidth(100, 0.6), 75);
}

}  // namespace
}  // namespace longhaul::planner
