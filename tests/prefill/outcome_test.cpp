#include "prefill/outcome.hpp"

#include <algorithm>

#include <gtest/gtest.h>

#include "base/random.hpp"

namespace longhaul::prefill {
namespace {

TEST(TimeHistogram, IsExactWhereTimesAreShort) {
  TimeHistogram histogram;
  EXPECT_FALSE(histogram.percentiles());
  for (int i = 1; i <= 100; ++i) histogram.add(Duration{i});
  const auto found = histogram.percentiles();
  ASSERT_TRUE(found);
  EXPECT_EQ(found->p50, 50ns);
  EXPECT_EQ(found->p90, 90ns);
  EXPECT_EQ(found->p99, 99ns);
  EXPECT_EQ(found->max, 100ns);
}

TEST(TimeHistogram, KeepsItsErrorOverAllTimes) {
  Random random{3};
  for (const int bits : {9, 10, 20, 40, 62}) {
    SCOPED_TRACE(bits);
    TimeHistogram histogram;
    std::vector<Duration> times;
    for (int i = 0; i < 1000; ++i) {
      times.push_back(Duration{random.between(0, std::int64_t{1} << bits)});
      histogram.add(times.back());
    }
    std::ranges::sort(times);
    const auto found = histogram.percentiles();
    ASSERT_TRUE(found);
    const auto is_near = [](Duration estimate, Duration exact) {
      const auto above = static_cast<double>((estimate - exact).count());
      return above >= 0 && above <= TimeHistogram::kError * static_cast<double>(exact.count());
    };
    EXPECT_TRUE(is_near(found->p50, times[499])) << found->p50.count();
    EXPECT_TRUE(is_near(found->p90, times[899])) << found->p90.count();
    EXPECT_TRUE(is_near(found->p99, times[989])) << found->p99.count();
    EXPECT_EQ(found->max, times.back());
  }
}

}  // namespace
}  // namespace longhaul::prefill
