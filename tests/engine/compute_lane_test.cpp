// The blocks given to a device that takes them ahead, when, and that rows have its stamps.
#include <numeric>

#include "device/failing_device.hpp"
#include "engine/engine.hpp"
#include "harness/profile/plan_builder.hpp"
#include "support/ranks/queueing_device.hpp"
#include "support/ranks/ranks_fixture.hpp"

namespace longhaul::testing {
namespace {

using namespace std::chrono_literals;
using harness::PlanBuilder;
using Played = QueueingDevice::Played;

class RunAhead : public RanksTest {
protected:
  /// This rank's own times; sums of checks are of all ranks.
  static OpTimes play(const Plan& plan, QueueingDevice& device, int iterations = 1) {
    ranks().watchdog().watch(&plan, 10s);
    engine::Engine engine{plan, ranks(), device, engine::EngineOptions{}};
    engine::IterationResult result;
    for (int i = 0; i < iterations; ++i) {
      result = engine.run(i);
      wrong_ = ranks().world().sum(result.checks.wrong());
      blocks_ = ranks().world().sum(result.checks.blocks);
    }
    ranks().watchdog().watch(nullptr, {});
    return result.times;
  }
  static harness::PlanBuilder builder() { return harness::PlanBuilder{"test", ranks().count()}; }
  static bool is(int rank) { return ranks().self() == Rank{rank}; }

  inline static std::int64_t wrong_ = 0, blocks_ = 0;
};

TEST_F(RunAhead, TheNextBlockIsGivenWhileOneRuns) {
  harness::PlanBuilder b = builder();
  std::vector<harness::PlanBuilder::Handle> blocks;
  for (int i = 0; i < 6; ++i) blocks.push_back(b.block(0, 20ms, MicrobatchId{i}));
  for (std::size_t i = 1; i < blocks.size(); ++i) b.after(blocks[i], blocks[i - 1]);
  const Plan plan = b.build();
  QueueingDevice device{2, 5ms};
  const OpTimes times = play(plan, device, 2);
  EXPECT_EQ(wrong_, 0);
  EXPECT_EQ(blocks_, 6);
  if (!is(0)) return;
  ASSERT_EQ(device.played.size(), 6U);
  for (std::size_t i = 0; i < blocks.size(); ++i) {
    const Played& block = device.played[i];
    const OpTime& time = times[index(b.id(blocks[i]))];
    EXPECT_EQ(block.op, b.id(blocks[i]));
    EXPECT_EQ(time.start, block.start) << "rows have the device's stamps";
    EXPECT_EQ(time.end, block.end);
    if (i == 0) continue;
    EXPECT_EQ(time.bound_by, b.id(blocks[i - 1]));
    EXPECT_EQ(time.ready, device.played[i - 1].end);
    if (i < 2) continue;
    EXPECT_GE(block.given, device.played[i - 2].end + 5ms) << "two at once, not more";
  }
  EXPECT_LT(device.played[1].given, device.played[0].end);
  EXPECT_EQ(device.played[1].start, device.played[0].end) << "the host's lag costs nothing";
}

TEST_F(RunAhead, ADeviceThatTakesOneWaitsForTheHost) {
  harness::PlanBuilder b = builder();
  (void)b.block(0, 2ms, MicrobatchId{0});
  (void)b.block(0, 2ms, MicrobatchId{1});
  const Plan plan = b.build();
  QueueingDevice device{1, 5ms};
  (void)play(plan, device);
  EXPECT_EQ(wrong_, 0);
  if (!is(0)) return;
  EXPECT_GE(device.played[1].start, device.played[0].end + 5ms);
}

TEST_F(RunAhead, TheRestOfALatencyIsTheDevicesToWait) {
  NEEDS_RANKS(2);
  harness::PlanBuilder b = builder();
  const auto message = b.message(0, 1, 1ms, 300ms, Bytes{1000});
  const auto consumer = b.block(1, 1ms);
  b.after(consumer, message.recv);
  const Plan plan = b.build();
  QueueingDevice device{2, 0ms};
  const OpTimes times = play(plan, device);
  EXPECT_EQ(wrong_, 0);
  if (!is(1)) return;
  const OpTime& recv = times[index(b.id(message.recv))];
  const OpTime& block = times[index(b.id(consumer))];
  EXPECT_LT(device.played[0].given, device.played[0].not_before) << "given while it was under way";
  EXPECT_GE(block.start, recv.start + 301ms);
  EXPECT_EQ(block.start, device.played[0].start);
  EXPECT_LE(recv.end, block.start);
  EXPECT_EQ(block.bound_by, b.id(message.recv));
  EXPECT_EQ(block.bound_kind, BoundKind::dependency);
}

TEST_F(RunAhead, ALatencyThatABlockHidesIsNotPaidAgain) {
  NEEDS_RANKS(2);
  harness::PlanBuilder b = builder();
  const auto message = b.message(0, 1, 1ms, 100ms, Bytes{1000});
  const auto busy = b.block(1, 400ms, MicrobatchId{0});
  const auto consumer = b.block(1, 1ms, MicrobatchId{1});
  b.after(consumer, message.recv);
  const Plan plan = b.build();
  QueueingDevice device{2, 5ms};
  const OpTimes times = play(plan, device);
  EXPECT_EQ(wrong_, 0);
  if (!is(1)) return;
  EXPECT_EQ(times[index(b.id(consumer))].start, times[index(b.id(busy))].end);
  EXPECT_EQ(times[index(b.id(consumer))].bound_by, b.id(busy));
  EXPECT_EQ(times[index(b.id(consumer))].bound_kind, BoundKind::lane);
  EXPECT_LT(times[index(b.id(message.recv))].end, times[index(b.id(busy))].end);
}

TEST_F(RunAhead, NothingIsGivenBeforeItsMessageHasCome) {
  NEEDS_RANKS(2);
  harness::PlanBuilder b = builder();
  const auto producer = b.block(0, 150ms);
  const auto message = b.message(0, 1, 1ms, 1ms, Bytes{1000});
  b.after(message.send, producer);
  const auto consumer = b.block(1, 1ms);
  b.after(consumer, message.recv);
  const Plan plan = b.build();
  QueueingDevice device{2, 0ms};
  const OpTimes times = play(plan, device);
  EXPECT_EQ(wrong_, 0);
  if (!is(1)) return;
  EXPECT_GE(device.played[0].given, times[index(b.id(message.recv))].start);
}

TEST_F(RunAhead, ABlockOfNoTimeEndsBehindTheReceiveThatItWaitedFor) {
  NEEDS_RANKS(2);
  harness::PlanBuilder b = builder();
  std::vector<harness::PlanBuilder::Message> messages;
  for (int i = 0; i < 20; ++i) {
    messages.push_back(b.message(0, 1, 1ms, 3ms, Bytes{1000}));
    b.after(b.block(1, Duration::zero(), MicrobatchId{i}), messages.back().recv);
  }
  const Plan plan = b.build();
  QueueingDevice device{2, 0ms};
  (void)play(plan, device, 3);
  EXPECT_EQ(wrong_, 0) << "verify_order sees every row";
  EXPECT_EQ(blocks_, 20);
}

TEST(FailingDevice, NamesTheBlockThatFailedOfThoseThatItWasGiven) {
  harness::PlanBuilder b{"test", 1};
  const auto first = b.block(0, 1ms, MicrobatchId{0});
  const auto second = b.block(0, 1ms, MicrobatchId{1});
  const Plan plan = b.build();
  device::FailingDevice device{std::make_unique<QueueingDevice>(2, Duration::zero()), plan, Rank{0},
                               engine::parse_fault("device@0:1")};
  device.begin_iteration(0);
  EXPECT_EQ(device.depth(), 2);
  device.start(b.id(first), now(), 1ms);
  device.start(b.id(second), now(), 1ms);
  const TimePoint later = now() + 10s;
  EXPECT_EQ(device.finished(later)->op, b.id(first)) << "the one before it ends well";
  try {
    (void)device.finished(later);
    FAIL();
  } catch (const engine::DeviceError& error) {
    EXPECT_EQ(error.op(), b.id(second));
  }
}

}  // namespace
}  // namespace longhaul::testing
