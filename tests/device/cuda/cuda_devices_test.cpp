#include "device/cuda/cuda_devices.hpp"

#include <thread>

#include "support/ranks/on_device.hpp"

namespace longhaul::testing {
namespace {

using namespace std::chrono_literals;

class CudaTimedDeviceTest : public OnDevice {
protected:
  static engine::FinishedBlock wait_for(device::CudaTimedDevice& device) {
    for (;;)
      if (const auto block = device.finished(now())) return *block;
  }
};

TEST_F(CudaTimedDeviceTest, StampsBlocksInOrderAndNoneShorterThanItsTime) {
  device::CudaTimedDevice device{0, Duration::zero()};
  ASSERT_EQ(device.depth(), 2);
  device.begin_iteration(0);
  const TimePoint begin = now();
  const TimePoint later = begin + 20ms;
  device.start(OpId{0}, later, 2ms);
  device.start(OpId{1}, begin, 3ms);
  EXPECT_NE(device.next_event(), kNever);
  const engine::FinishedBlock first = wait_for(device);
  device.start(OpId{2}, begin, Duration::zero());
  const engine::FinishedBlock second = wait_for(device);
  const engine::FinishedBlock third = wait_for(device);
  EXPECT_EQ(first.op, OpId{0});
  EXPECT_EQ(second.op, OpId{1});
  EXPECT_EQ(third.op, OpId{2});
  EXPECT_GE(first.start, later - clock().largest_error()) << "the device waits itself";
  // No end is after the host's look, which may be before it by the error of the clock.
  const Duration cut = 2ns + clock().largest_error();
  EXPECT_GE(first.due - first.start, 2ms - cut);
  EXPECT_GE(second.due - second.start, 3ms - cut);
  EXPECT_GE(second.start, first.due);
  EXPECT_GE(third.start, second.due);
  EXPECT_GE(third.due, third.start);
  EXPECT_EQ(device.next_event(), kNever);
  EXPECT_EQ(device.poll_interval(), Duration::zero());
}

/// The host sleeps while one block ends and the next begins. A machine that is busy may need more
/// than one try.
TEST_F(CudaTimedDeviceTest, TheSecondBlockNeedsNoHostToBegin) {
  device::CudaTimedDevice device{0, Duration::zero()};
  bool began_alone = false;
  for (Duration sleep = 20ms; !began_alone && sleep < 10s; sleep *= 2) {
    device.begin_iteration(0);
    device.start(OpId{0}, now(), 5ms);
    device.start(OpId{1}, now(), 1ms);
    std::this_thread::sleep_for(sleep);
    const TimePoint looked = now();
    (void)wait_for(device);
    began_alone = wait_for(device).start < looked;
  }
  EXPECT_TRUE(began_alone);
}

/// A machine that is busy begins a block later than the credit allows, or sees its end late: it may
/// need more than one try.
TEST_F(CudaTimedDeviceTest, MakesUpForALateStartWithinTheCredit) {
  device::CudaTimedDevice device{0, 10s};
  bool recovered = false;
  for (int tries = 0; !recovered && tries < 10; ++tries) {
    device.begin_iteration(0);
    // 10 ms late, and 2% of the block may be recovered.
    device.start(OpId{0}, now() - 10ms, 1s);
    const engine::FinishedBlock block = wait_for(device);
    EXPECT_GE(block.due - block.start, 980ms - clock().largest_error());
    recovered = block.due - block.start < 995ms;
  }
  EXPECT_TRUE(recovered);
}

}  // namespace
}  // namespace longhaul::testing
