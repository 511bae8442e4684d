#include "device/cpu_devices.hpp"

#include <atomic>

#include "device/stream_device.hpp"
#include "support/ranks/ranks_fixture.hpp"

namespace longhaul::testing {
namespace {

using namespace std::chrono_literals;

TEST(TimedDevice, EndsABlockAtItsDeadlineAndNotBefore) {
  device::TimedDevice device;
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

TEST(TimedDevice, SlowsABlockBesideAMessage) {
  device::TimedDevice device;
  ASSERT_TRUE(device.slow_by(plan::Overlap::of(1, 1, 2)));
  device.begin_iteration(0);
  device.start(OpId{4}, 0ms, 10ms);
  EXPECT_EQ(device.next_event(), 10ms);
  device.message_holds(NetworkLevel::wan, 2ms, 6ms);
  EXPECT_EQ(device.next_event(), 12ms);
  EXPECT_FALSE(device.finished(11ms));
  EXPECT_EQ(device.finished(12ms).value().due, 12ms);
  device.message_holds(NetworkLevel::wan, 14ms, 34ms);
  device.start(OpId{5}, 12ms, 10ms);
  EXPECT_EQ(device.next_event(), 30ms);
  EXPECT_TRUE(device.finished(30ms));
  device.begin_iteration(1);
  device.start(OpId{4}, 32ms, 10ms);
  EXPECT_EQ(device.next_event(), 42ms) << "messages of the iteration before are over";
  EXPECT_TRUE(device.finished(42ms));
  ASSERT_TRUE(device.slow_by({}));
  device.begin_iteration(0);
  device.start(OpId{4}, 0ms, 10ms);
  device.message_holds(NetworkLevel::wan, 2ms, 6ms);
  EXPECT_EQ(device.next_event(), 10ms) << "the next plan has none";
}

/// Runs until it is let go; fails where it is told to.
class HeldWork final : public engine::BlockWork {
public:
  void run(OpId block) override {
    ran = block;
    held.wait(true);
    if (fails) throw Error{"F(chunk 1): 5 B are too many", ExitCode::run_failed};
  }
  void ended(OpId block) override { over = block; }
  std::atomic<bool> held = true;
  bool fails = false;
  OpId ran = kNone<OpId>, over = kNone<OpId>;

  void let_go() {
    held = false;
    held.notify_all();
  }
};

class RealDeviceTest : public RanksTest {
protected:
  /// As an engine waits: reads the doorbell, looks, and sleeps until it rings.
  engine::FinishedBlock wait_for_end(device::LayerDevice& device) {
    while (true) {
      const std::uint32_t doorbell = ranks().host_ranks().doorbell();
      if (const auto done = device.finished(now())) return *done;
      ranks().host_ranks().sleep(doorbell, now() + 60s);
    }
  }
  HeldWork work_;
};

TEST_F(RealDeviceTest, ComputesBesideTheCallerAndRingsAtTheEnd) {
  device::LayerDevice device{work_, ranks().host_ranks()};
  EXPECT_FALSE(device.finished(now()));
  const TimePoint begin = now();
  device.start(OpId{7}, begin, 10h);
  EXPECT_FALSE(device.finished(now())) << "it is held";
  EXPECT_EQ(device.next_event(), kNever) << "a bell will ring";
  work_.let_go();
  const engine::FinishedBlock done = wait_for_end(device);
  EXPECT_EQ(done.op, OpId{7});
  EXPECT_GE(done.due, begin);
  EXPECT_LE(done.due, now());
  EXPECT_EQ(work_.over, OpId{7});
  device.start(OpId{8}, now(), 0s);
  EXPECT_EQ(wait_for_end(device).op, OpId{8});
}

TEST_F(RealDeviceTest, TellsWhichBlockFailedAndWhy) {
  device::LayerDevice device{work_, ranks().host_ranks()};
  work_.fails = true;
  work_.let_go();
  device.start(OpId{3}, now(), 0s);
  try {
    (void)wait_for_end(device);
    ADD_FAILURE() << "it ended well";
  } catch (const engine::DeviceError& error) {
    EXPECT_EQ(error.op(), OpId{3});
    EXPECT_STREQ(error.what(), "F(chunk 1): 5 B are too many");
  }
  EXPECT_EQ(work_.over, kNone<OpId>) << "it did not end";
}

/// Notes what ran; ops above 9 wait for op 1.
class NotedWork final : public engine::StreamWork {
public:
  void run(OpId op, int iteration, int version) override {
    if (index(op) > 9) held.wait(true);
    if (op == OpId{9}) throw Error{"part 3 is broken", ExitCode::run_failed};
    const std::lock_guard lock{mutex};
    ran.push_back({op, iteration, version});
    if (op != OpId{1}) return;
    held = false;
    held.notify_all();
  }
  struct Run {
    OpId op{};
    int iteration = 0, version = 0;
    friend bool operator==(const Run&, const Run&) = default;
  };
  std::mutex mutex;
  std::vector<Run> ran;
  std::atomic<bool> held = true;
};

class StreamDeviceTest : public RanksTest {
protected:
  engine::FinishedBlock wait_for_end(device::StreamDevice& device) {
    while (true) {
      const std::uint32_t doorbell = ranks().host_ranks().doorbell();
      if (const auto done = device.finished(now())) return *done;
      ranks().host_ranks().sleep(doorbell, std::min(device.next_event(), now() + 60s));
    }
  }
  NotedWork work_;
};

TEST_F(StreamDeviceTest, RunsTasksBesideEachOther) {
  device::StreamDevice device{work_, ranks().host_ranks(), device::Pace::real};
  device.start(OpId{10}, now(), 0s);
  device.start(OpId{11}, now(), 0s);
  EXPECT_FALSE(device.finished(now())) << "both wait for op 1";
  device.start(OpId{1}, now(), 0s);
  std::vector<OpId> ended;
  for (int i = 0; i < 3; ++i) ended.push_back(wait_for_end(device).op);
  std::ranges::sort(ended);
  EXPECT_EQ(ended, (std::vector{OpId{1}, OpId{10}, OpId{11}}));
  EXPECT_EQ(work_.ran.front().op, OpId{1});
}

TEST_F(StreamDeviceTest, CountsIterationsAndPassesVersionsOn) {
  device::StreamDevice device{work_, ranks().host_ranks(), device::Pace::real};
  for (const int version : {-1, 4}) {
    if (version >= 0) device.meets(OpId{2}, version);
    device.start(OpId{2}, now(), 0s);
    (void)wait_for_end(device);
  }
  EXPECT_EQ(work_.ran, (std::vector<NotedWork::Run>{{OpId{2}, 0, -1}, {OpId{2}, 1, 4}}));
}

TEST_F(StreamDeviceTest, LastsAsLongAsModelledAndSaysWhatTookLonger) {
  device::StreamDevice device{work_, ranks().host_ranks(), device::Pace::modelled};
  const TimePoint begin = now();
  device.start(OpId{2}, begin, 30ms);
  const engine::FinishedBlock done = wait_for_end(device);
  EXPECT_EQ(done.due, begin + 30ms);
  EXPECT_EQ(done.begin, begin);
  device.start(OpId{3}, now() - 20ms, 10ms);
  const engine::FinishedBlock late = wait_for_end(device);
  EXPECT_GT(late.due, begin);
  EXPECT_EQ(late.begin, kNever) << "its end is a stamp, not a plan";
  const auto overruns = device.take_overruns();
  EXPECT_EQ(overruns.ops, 2);
  EXPECT_EQ(overruns.longer, 1);
  EXPECT_EQ(device.take_overruns().ops, 0);
}

TEST_F(StreamDeviceTest, TellsWhichTaskFailedAndWhy) {
  device::StreamDevice device{work_, ranks().host_ranks(), device::Pace::real};
  device.start(OpId{9}, now(), 0s);
  try {
    (void)wait_for_end(device);
    ADD_FAILURE() << "it ended well";
  } catch (const engine::DeviceError& error) {
    EXPECT_EQ(error.op(), OpId{9});
    EXPECT_STREQ(error.what(), "part 3 is broken");
  }
}

}  // namespace
}  // namespace longhaul::testing
