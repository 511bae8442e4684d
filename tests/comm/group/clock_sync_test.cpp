#include "comm/group/clock_sync.hpp"

#include <gtest/gtest.h>

#include "base/random.hpp"

namespace longhaul::comm {
namespace {

using namespace std::chrono_literals;

/// Offset 5 s at the start; 10 s later 200 us more: 20 us a second.
constexpr ClockAlignment kDrifting{{100s, 5s, 30us}, {110s, 5s + 200us, 20us}};

TEST(ClockAlignment, LiesOnTheLineBetweenBothEnds) {
  EXPECT_DOUBLE_EQ(kDrifting.drift(), 20e-6);
  EXPECT_EQ(kDrifting.offset_at(100s), 5s);
  EXPECT_EQ(kDrifting.offset_at(105s), 5s + 100us);
  EXPECT_EQ(kDrifting.offset_at(110s), 5s + 200us);
  EXPECT_EQ(kDrifting.error(), 30us);
}

TEST(ClockAlignment, HasNoDriftBeforeTheEndIsKnown) {
  const ClockAlignment begun{kDrifting.start, {}};
  EXPECT_EQ(begun.drift(), 0);
  EXPECT_EQ(begun.offset_at(107s), 5s);
  EXPECT_EQ(begun.error(), 30us);
}

/// Whatever the measurements are off by within their errors, so is what lies between them.
TEST(ClockAlignment, StatesAnErrorThatHolds) {
  Random random{7};
  for (int i = 0; i < 1000; ++i) {
    const auto between = [&](std::int64_t low, std::int64_t high) {
      return Duration{random.between(low, high)};
    };
    const TimePoint begin = between(0, 1'000'000'000'000);
    const Duration length = between(1'000'000, 3'600'000'000'000);
    const Duration offset = between(-1'000'000'000'000, 1'000'000'000'000);
    const double rate = 1e-4 * (2 * random.uniform() - 1);
    const auto truth = [&](TimePoint at) {
      return offset + Duration{std::llround(rate * static_cast<double>((at - begin).count()))};
    };
    const auto measured = [&](TimePoint at) {
      const Duration error = between(1'000, 1'000'000);
      return ClockOffset{at, truth(at) + between(-error.count(), error.count()), error};
    };
    const ClockAlignment clock{measured(begin), measured(begin + length)};
    const TimePoint at = begin + between(0, length.count());
    EXPECT_LE(std::abs((clock.offset_at(at) - truth(at)).count()), clock.error().count() + 2)
        << "number " << i;
  }
}

}  // namespace
}  // namespace longhaul::comm
