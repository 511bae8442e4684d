#include "support/ranks/on_device.hpp"

namespace longhaul::testing {
namespace {

using namespace std::chrono_literals;

using DeviceClockTest = OnDevice;

TEST_F(DeviceClockTest, AStampLiesBetweenTwoLooksOfTheHostWithinTheError) {
  clock().refresh(0ns);
  constexpr std::size_t kStamps = 50;
  Stamped stamped{kStamps};
  for (std::size_t i = 0; i < kStamps; ++i) {
    const TimePoint before = now();
    stamped.stamp();
    const TimePoint stamp = clock().to_host(stamped.at(i));
    const TimePoint after = now();
    EXPECT_GE(stamp, before - clock().error());
    EXPECT_LE(stamp, after + clock().error());
  }
  EXPECT_GT(clock().tick(), 0ns);
  EXPECT_GE(clock().error(), clock().tick() / 2);
  EXPECT_GE(clock().largest_error(), clock().error());
}

TEST_F(DeviceClockTest, BothWaysAreTheSameWay) {
  for (const Duration ahead : {Duration{0}, Duration{1ms}, Duration{10s}, -Duration{3s}}) {
    const TimePoint host = now() + ahead;
    const TimePoint back = clock().to_host(clock().to_device(host));
    EXPECT_LE(std::abs((back - host).count()), 2) << ahead.count();
  }
}

/// A second measurement says by how much the first one missed: that is in the largest error.
TEST_F(DeviceClockTest, MeasuringAgainKeepsTheClocksTogether) {
  cuda::DeviceClock own{0};
  const TimePoint host = now();
  const std::uint64_t device = own.to_device(host);
  const Duration before = own.error();
  own.refresh(0ns);
  const Duration moved = own.to_host(device) - host;
  EXPECT_LE(std::abs(moved.count()), (before + own.largest_error()).count());
  EXPECT_LE(std::abs(own.drift()), 1e-3);
  const Duration error = own.error();
  own.refresh(1h);
  EXPECT_EQ(own.error(), error) << "young enough";
}

}  // namespace
}  // namespace longhaul::testing
