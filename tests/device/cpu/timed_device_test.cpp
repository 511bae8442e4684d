#include "device/cpu/timed_device.hpp"

#include <gtest/gtest.h>

namespace longhaul::device {
namespace {

TEST(TimedDevice, EndsABlockAtItsDeadlineAndNotBefore) {
  TimedDevice device;
  EXPECT_EQ(device.next_event(), kNever);
  device.start(OpId{4}, TimePoint{100}, Duration{50});
  EXPECT_EQ(device.next_event(), TimePoint{150});
  EXPECT_FALSE(device.finished(TimePoint{149}));
  const auto done = device.finished(TimePoint{180});
  ASSERT_TRUE(done);
  EXPECT_EQ(done->op, OpId{4});
  EXPECT_EQ(done->due, TimePoint{150}) << "over when it was due, however late that was seen";
  EXPECT_EQ(device.next_event(), kNever);
}

}  // namespace
}  // namespace longhaul::device
