#include "harness/environment/gpu_energy.hpp"

#include <chrono>
#include <thread>

#include <gtest/gtest.h>

namespace longhaul::harness {
namespace {

TEST(GpuEnergy, TakesTheCountersDifference) {
  const GpuEnergy energy{"GPU-0", LONGHAUL_FAKE_NVIDIA};
  EXPECT_STREQ(energy.source(), "counter");
  const auto first = energy.joules();
  ASSERT_TRUE(first);
  EXPECT_DOUBLE_EQ(*first, 2.0);
  EXPECT_DOUBLE_EQ(energy.joules().value(), 4.0);
}

TEST(GpuEnergy, SamplesPowerWhereNothingIsCounted) {
  const auto begin = std::chrono::steady_clock::now();
  const GpuEnergy energy{"GPU-1", LONGHAUL_FAKE_NVIDIA};
  EXPECT_STREQ(energy.source(), "power samples");
  while (energy.joules().value() < 70)  // 0.1 s at 700 W
    std::this_thread::sleep_for(std::chrono::milliseconds{5});
  const std::chrono::duration<double> took = std::chrono::steady_clock::now() - begin;
  EXPECT_LE(energy.joules().value(), 700 * (took.count() + 1e-3) + 70)
      << "no more than that time, and the sample since";
}

TEST(GpuEnergy, SaysThatNothingIsKnown) {
  const GpuEnergy unknown{"GPU-7", LONGHAUL_FAKE_NVIDIA};
  EXPECT_FALSE(unknown.joules());
  EXPECT_STREQ(unknown.source(), "none");
  const GpuEnergy nowhere{"GPU-0", "no-nvml"};
  EXPECT_FALSE(nowhere.joules());
}

}  // namespace
}  // namespace longhaul::harness
