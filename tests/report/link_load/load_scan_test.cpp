#include "report/link_load/load_scan.hpp"

#include <algorithm>
#include <set>

#include <gtest/gtest.h>

#include "base/index.hpp"
#include "base/random.hpp"

namespace longhaul::report {
namespace {

using namespace std::chrono_literals;

/// Of sums of doubles.
constexpr double kRounding = 1e-6;
/// A byte a nanosecond.
constexpr Bandwidth kRate{8e9};

LoadWindow scanned(const std::vector<LinkHold>& holds, Duration credit = 0ns,
                   Bandwidth rate = kRate) {
  LoadScan scan{rate, credit};
  for (const LinkHold& hold : holds) scan.add(hold);
  return scan.finish();
}

TEST(LoadScan, TakesMessagesOneAfterTheOther) {
  EXPECT_EQ(scanned({}).excess_ns, 0);
  EXPECT_EQ(scanned({{0, 1000, 1000}, {1000, 3000, 2000}, {7000, 7500, 500}}).excess_ns, 0);
}

TEST(LoadScan, ForgivesTheRoundingOfANanosecondAMessage) {
  EXPECT_EQ(scanned({{100, 1099, 1000}, {1099, 2098, 1000}}).excess_ns, 0);
  const LoadWindow window = scanned({{100, 1098, 1000}});
  EXPECT_NEAR(window.excess_ns, 1, kRounding);
  EXPECT_EQ(window.begin_ns, 100);
  EXPECT_EQ(window.end_ns, 1098);
  EXPECT_NEAR(window.bytes, 1000, kRounding);
}

TEST(LoadScan, AddsUpMessagesThatAreHeldTogether) {
  // From 500 to 1000 half of each.
  const LoadWindow window = scanned({{0, 1000, 1000}, {500, 1500, 1000}});
  EXPECT_NEAR(window.excess_ns, 499, kRounding);
  EXPECT_EQ(window.begin_ns, 500);
  EXPECT_EQ(window.end_ns, 1000);
  EXPECT_NEAR(window.bytes, 1000, kRounding);
  // Two at half the rate are what the link carries.
  EXPECT_EQ(scanned({{0, 2000, 1000}, {0, 2000, 1000}, {2000, 3000, 1000}}).excess_ns, 0);
}

TEST(LoadScan, FindsTheWorstOfSeveralWindows) {
  const LoadWindow window = scanned(
      {{0, 90, 100}, {1000, 1200, 400}, {1300, 1400, 200}, {9000, 9010, 50}, {9500, 9600, 100}});
  // 399 in 200 ns, a pause of 100, 199 in 100: 199 beyond, 99 after the pause, then 198.
  EXPECT_EQ(window.begin_ns, 1000);
  EXPECT_EQ(window.end_ns, 1200);
  EXPECT_NEAR(window.excess_ns, 199, kRounding);
  const LoadWindow longer = scanned({{1000, 1200, 400}, {1220, 1400, 360}});
  EXPECT_EQ(longer.end_ns, 1400);
  EXPECT_NEAR(longer.bytes, 760, kRounding);
  EXPECT_NEAR(longer.excess_ns, 199 - 20 + 179, kRounding);
}

TEST(LoadScan, TakesMessagesThatLastNoTime) {
  EXPECT_EQ(scanned({{10, 10, 1}}).excess_ns, 0);
  const LoadWindow window = scanned({{10, 10, 5}, {10, 10, 5}});
  EXPECT_EQ(window.excess_ns, 8);
  EXPECT_EQ(window.begin_ns, 10);
  EXPECT_EQ(window.end_ns, 10);
  EXPECT_EQ(window.bytes, 10);
}

TEST(LoadScan, ForgivesTheCreditUpToTwoPercent) {
  const std::vector<LinkHold> late{{0, 980'000, 1'000'000}, {980'000, 1'960'000, 1'000'000}};
  EXPECT_EQ(scanned(late, 1ms).excess_ns, 0);
  EXPECT_NEAR(scanned(late).excess_ns, 2 * 19'999, kRounding);
  EXPECT_NEAR(scanned(late, 10us).excess_ns, 2 * 9'999, kRounding);
  EXPECT_NEAR(scanned({{0, 979'990, 1'000'000}}, 1ms).excess_ns, 9, kRounding);
}

// All windows, one by one.
double worst_by_hand(const std::vector<LinkHold>& holds) {
  std::set<std::int64_t> starts, ends;
  for (const LinkHold& hold : holds) {
    starts.insert(hold.start_ns);
    ends.insert(hold.end_ns);
  }
  double worst = 0;
  for (const std::int64_t begin : starts) {
    for (const std::int64_t end : ends) {
      if (end < begin) continue;
      double work = 0;
      for (const LinkHold& hold : holds) {
        const double whole = std::max(0.0, static_cast<double>(hold.size_bytes) - 1);
        const std::int64_t from = std::max(begin, hold.start_ns);
        const std::int64_t to = std::min(end, hold.end_ns);
        if (hold.start_ns == hold.end_ns) {
          if (from == hold.start_ns && to == from) work += whole;
        } else if (to > from) {
          work += whole * static_cast<double>(to - from) /
                  static_cast<double>(hold.end_ns - hold.start_ns);
        }
      }
      worst = std::max(worst, work - static_cast<double>(end - begin));
    }
  }
  return worst;
}

TEST(LoadScan, FindsWhatAllWindowsOneByOneSay) {
  int beyond = 0;
  for (std::uint64_t seed = 1; seed <= 400; ++seed) {
    Random random{seed};
    std::vector<LinkHold> holds;
    for (std::int64_t count = random.between(1, 25); count > 0; --count) {
      const std::int64_t start = random.between(0, 200);
      holds.push_back({start, start + random.between(0, 40), random.between(1, 30)});
    }
    std::ranges::sort(holds, {}, &LinkHold::start_ns);
    const double expected = worst_by_hand(holds);
    const LoadWindow found = scanned(holds);
    EXPECT_NEAR(found.excess_ns, expected, kRounding) << seed;
    beyond += expected > 0 ? 1 : 0;
  }
  EXPECT_GT(beyond, 200);
  EXPECT_LT(beyond, 400);
}

}  // namespace
}  // namespace longhaul::report
