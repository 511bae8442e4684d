#include "device/slowed_time.hpp"

#include <algorithm>
#include <array>
#include <vector>

#include <gtest/gtest.h>

#include "base/random.hpp"

namespace longhaul::device {
namespace {

using namespace std::chrono_literals;
using plan::Overlap;

TEST(SlowedTime, ABlockBesideAMessageEndsLater) {
  SlowedTime time{Overlap::of(1, 1, 2)};
  EXPECT_EQ(time.end_of(0ms, 10ms), 10ms);
  time.add(NetworkLevel::wan, 2ms, 6ms);
  EXPECT_EQ(time.end_of(0ms, 10ms), 12ms);
  EXPECT_EQ(time.end_of(0ms, 2ms), 2ms) << "over when the message begins";
  EXPECT_EQ(time.end_of(3ms, 1ms), 5ms);
  EXPECT_EQ(time.end_of(6ms, 10ms), 16ms);
  time.add(NetworkLevel::node, 0ms, 100ms);
  EXPECT_EQ(time.end_of(0ms, 10ms), 12ms) << "a level that does not slow";
}

TEST(SlowedTime, TheLargestOfSeveralCounts) {
  SlowedTime time{Overlap::of(2, 1, 4)};
  time.add(NetworkLevel::wan, 4ms, 8ms);  // told before the one that begins earlier
  time.add(NetworkLevel::node, 0ms, 10ms);
  EXPECT_EQ(time.end_of(0ms, 4ms), 10ms);  // 2 ms done by 4, 1 more by 8, 1 more by 10
}

TEST(SlowedTime, ForgetsWhatIsOver) {
  SlowedTime time{Overlap::of(1, 1, 2)};
  time.add(NetworkLevel::wan, 0ms, 4ms);
  time.add(NetworkLevel::wan, 8ms, 20ms);
  time.forget_before(10ms);
  EXPECT_EQ(time.end_of(10ms, 10ms), 25ms) << "the second message goes on";
  time.add(NetworkLevel::wan, 6ms, 24ms);  // seen late
  EXPECT_EQ(time.end_of(10ms, 10ms), 27ms);
}

/// In steps of a nanosecond, in sixths.
TimePoint by_steps(const std::vector<std::array<TimePoint, 2>>& two,
                   const std::vector<std::array<TimePoint, 2>>& three, TimePoint begin,
                   Duration work) {
  const auto any = [](const auto& holds, TimePoint at) {
    return std::ranges::any_of(holds,
                               [&](const auto& hold) { return hold[0] <= at && at < hold[1]; });
  };
  std::int64_t left = 6 * work.count();
  TimePoint at = begin;
  for (; left > 0; ++at) left -= any(three, at) ? 2 : any(two, at) ? 3 : 6;
  return at;
}

TEST(SlowedTime, IsWhatStepsOfANanosecondGive) {
  Random random{11};
  for (int i = 0; i < 500; ++i) {
    SlowedTime time{Overlap::of(1, 2, 3)};
    std::vector<std::array<TimePoint, 2>> two, three;
    for (std::int64_t k = random.between(0, 8); k > 0; --k) {
      const TimePoint from{random.between(0, 60)};
      const TimePoint to = from + Duration{random.between(0, 30)};
      const bool wan = random.between(0, 1) == 0;
      (wan ? three : two).push_back({from, to});
      time.add(wan ? NetworkLevel::wan : NetworkLevel::datacenter, from, to);
    }
    const TimePoint begin{random.between(0, 70)};
    const Duration work{random.between(0, 40)};
    const TimePoint want = by_steps(two, three, begin, work);
    EXPECT_EQ(time.end_of(begin, work), want) << i;
    time.forget_before(begin);
    EXPECT_EQ(time.end_of(begin, work), want) << i;
  }
}

}  // namespace
}  // namespace longhaul::device
