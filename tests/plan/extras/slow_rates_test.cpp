#include "plan/extras/slow_rates.hpp"

#include <gtest/gtest.h>

#include "base/random.hpp"

namespace longhaul::plan {
namespace {

TEST(SlowRates, TheLargestOfSeveralCounts) {
  const SlowRates rates{Overlap::of(1.5, 1.2, 3)};
  const auto time = [&](const SlowRates::Holds& holds) {
    return SlowRates::time_for(rates.parts_of(Duration{600}), rates.rate(holds)).count();
  };
  EXPECT_EQ(time({0, 0, 0}), 600);
  EXPECT_EQ(time({1, 0, 0}), 900);
  EXPECT_EQ(time({0, 2, 0}), 720);
  EXPECT_EQ(time({5, 1, 0}), 900);
  EXPECT_EQ(time({1, 1, 1}), 1800);
}

TEST(SlowRates, OnlyTheEndIsRoundedUpwards) {
  const SlowRates rates{Overlap::of(1, 1, 1.001)};
  const auto beside = rates.rate({0, 0, 1});
  EXPECT_EQ(SlowRates::time_for(rates.parts_of(Duration{1000}), beside), Duration{1001});
  EXPECT_EQ(SlowRates::time_for(rates.parts_of(Duration{1}), beside), Duration{2});
  EXPECT_EQ(SlowRates::time_for(0, beside), Duration{0});
  EXPECT_EQ(SlowRates::time_for(-1, beside), Duration{0});
}

// All that a scenario may say: what is left of a block of a century still is a whole number.
TEST(SlowRates, AnySlowdownsOfAScenarioFit) {
  Random random{3};
  for (int i = 0; i < 1000; ++i) {
    const auto any = [&] { return static_cast<double>(random.between(1000, 1'000'000)) / 1000; };
    const double wan = any();
    const SlowRates rates{Overlap::of(any(), any(), wan)};
    const Duration century{std::int64_t{1} << 61};
    const auto work = rates.parts_of(century);
    EXPECT_EQ(SlowRates::time_for(work, rates.rate({})), century);
    const Duration hour{3'600'000'000'000};
    const auto want = static_cast<std::int64_t>(wan * 1000 + 0.5) * (hour.count() / 1000);
    EXPECT_EQ(SlowRates::time_for(rates.parts_of(hour), rates.rate({0, 0, 1})).count(), want);
  }
}

}  // namespace
}  // namespace longhaul::plan
