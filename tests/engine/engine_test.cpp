#include "engine/engine.hpp"

#include <algorithm>
#include <cstring>

#include "device/cpu_devices.hpp"
#include "harness/profile/plan_builder.hpp"
#include "plan/plan.hpp"
#include "support/ranks/ranks_fixture.hpp"

namespace longhaul::testing {
namespace {

using namespace std::chrono_literals;
using harness::PlanBuilder;

/// Plays a plan. Clock times are asserted from below alone: a host may always be slower.
class EngineTest : public OnRanks {
protected:
  /// All ranks' times on every rank (one host: one clock), and the sum of their checks.
  static OpTimes play(const Plan& plan, engine::EngineOptions options = {}, int iterations = 1) {
    device::TimedDevice device;
    ranks().watchdog().watch(&plan, 10s);
    engine::Engine engine{plan, ranks(), device, options};
    OpTimes all;
    for (int i = 0; i < iterations; ++i) {
      const engine::IterationResult result = engine.run(i);
      wrong_ = ranks().world().sum(result.checks.wrong());
      messages_ = ranks().world().sum(result.checks.messages);
      blocks_ = ranks().world().sum(result.checks.blocks);
      leases_ = ranks().world().sum(result.lease.leases);
      all = share(plan, result.times);
    }
    ranks().watchdog().watch(nullptr, {});
    return all;
  }

  static OpTimes share(const Plan& plan, const OpTimes& mine) {
    const OpRange range = ops_of_rank(plan, ranks().self());
    std::vector<int> counts;
    const auto bytes = ranks().world().gather(
        std::as_bytes(std::span{mine}.subspan(range.first, range.count)), counts);
    const std::string text =
        ranks().world().broadcast({reinterpret_cast<const char*>(bytes.data()), bytes.size()});
    OpTimes all(plan.ops.size());
    std::memcpy(all.data(), text.data(), text.size());
    return all;
  }

  /// The plan has `ranks` ranks, those beyond what it needs with nothing to do.
  static harness::PlanBuilder builder(Arrangement arrangement = Arrangement::decoupled) {
    return harness::PlanBuilder{"test", ranks().count(), arrangement};
  }

  inline static thread_local std::int64_t wrong_ = 0, messages_ = 0, blocks_ = 0, leases_ = 0;
};

RANKS_TEST(EngineTest, RunsBlocksOneBehindTheOtherForAsLongAsTheyTake) {
  harness::PlanBuilder b = builder();
  const auto first = b.block(0, 5ms, MicrobatchId{0});
  const auto second = b.block(0, 3ms, MicrobatchId{1});
  const auto third = b.block(0, 2ms, MicrobatchId{2});
  const Plan plan = b.build();
  const OpTimes times = play(plan);
  const OpTime& one = times[index(b.id(first))];
  const OpTime& two = times[index(b.id(second))];
  const OpTime& three = times[index(b.id(third))];
  EXPECT_GE(one.end - one.start, 5ms);
  EXPECT_GE(two.start, one.end);
  EXPECT_GE(three.end - one.start, 10ms) << "lateness is made up for, never more than that";
  EXPECT_EQ(two.bound_by, b.id(first));
  EXPECT_EQ(two.bound_kind, BoundKind::lane);
  EXPECT_EQ(one.bound_kind, BoundKind::start);
  EXPECT_EQ(blocks_, 3);
  EXPECT_EQ(wrong_, 0);
}

RANKS_TEST(EngineTest, ScalesBlocksOfAStraggler) {
  harness::PlanBuilder b = builder();
  const auto block = b.block(0, 2ms);
  const Plan plan = b.build();
  engine::EngineOptions options;
  options.run.stragglers.assign(static_cast<std::size_t>(ranks().count()), 3.0);
  const OpTimes times = play(plan, options);
  const OpTime& time = times[index(b.id(block))];
  EXPECT_GE(time.end - time.start, 6ms);
}

RANKS_TEST(EngineTest, AMessageTakesItsTransferAndItsLatency) {
  NEEDS_RANKS(2);
  harness::PlanBuilder b = builder();
  const auto block = b.block(0, 1ms);
  const auto message = b.message(0, 1, 3ms, 4ms, Bytes{1 << 20});
  const auto consumer = b.block(1, 1ms);
  b.after(message.send, block);
  b.after(consumer, message.recv);
  const Plan plan = b.build();
  const OpTimes times = play(plan);
  const OpTime& send = times[index(b.id(message.send))];
  const OpTime& recv = times[index(b.id(message.recv))];
  EXPECT_GE(send.start, times[index(b.id(block))].end);
  EXPECT_GE(send.end, times[index(b.id(block))].end + 2ms);  // up to 1 ms of lateness caught up
  EXPECT_GE(recv.end - recv.start, 7ms) << "by the receiver's clock, from when it saw the message";
  EXPECT_GE(recv.start, send.start);
  EXPECT_GE(times[index(b.id(consumer))].start, recv.end);
  EXPECT_EQ(times[index(b.id(consumer))].bound_by, b.id(message.recv));
  EXPECT_EQ(recv.bound_by, b.id(message.send));
  EXPECT_EQ(send.bound_by, b.id(block));
  EXPECT_EQ(messages_, 1);
  EXPECT_EQ(wrong_, 0);
}

RANKS_TEST(EngineTest, MessagesOfOneLinkFollowEachOtherAndTheirLatenciesOverlap) {
  NEEDS_RANKS(2);
  constexpr int kMessages = 8;
  harness::PlanBuilder b = builder();
  std::vector<harness::PlanBuilder::Message> messages;
  for (int i = 0; i < kMessages; ++i) messages.push_back(b.message(0, 1, 2ms, 30ms, Bytes{1000}));
  const Plan plan = b.build();
  const OpTimes times = play(plan);
  const auto at = [&](harness::PlanBuilder::Handle op) { return times[index(b.id(op))]; };
  for (std::size_t i = 1; i < kMessages; ++i) {
    EXPECT_GE(at(messages[i].send).start, at(messages[i - 1].send).end);
    EXPECT_EQ(at(messages[i].send).bound_kind, BoundKind::resource);
    EXPECT_EQ(at(messages[i].send).bound_by, b.id(messages[i - 1].send));
  }
  EXPECT_GE(at(messages.back().send).end - at(messages.front().send).start, kMessages * 2ms);
  EXPECT_LT(at(messages.back().recv).start, at(messages.front().recv).end)
      << "the last is under way before the first has arrived";
  EXPECT_EQ(wrong_, 0);
}

RANKS_TEST(EngineTest, ComputationHidesADelay) {
  NEEDS_RANKS(2);
  harness::PlanBuilder b = builder();
  const auto message = b.message(0, 1, 1ms, 5ms, Bytes{1000});
  const auto busy = b.block(1, 200ms, MicrobatchId{0});
  const auto consumer = b.block(1, 1ms, MicrobatchId{1});
  b.after(consumer, message.recv);
  const Plan plan = b.build();
  const OpTimes times = play(plan);
  EXPECT_LT(times[index(b.id(message.recv))].end, times[index(b.id(busy))].end)
      << "arrived while the device was busy";
  EXPECT_EQ(times[index(b.id(consumer))].bound_by, b.id(busy)) << "no delay was left to wait for";
  EXPECT_EQ(times[index(b.id(consumer))].bound_kind, BoundKind::lane);
}

RANKS_TEST(EngineTest, GroupedTransfersWaitForTheReceiver) {
  NEEDS_RANKS(2);
  harness::PlanBuilder b = builder(Arrangement::grouped);
  const auto message = b.message(0, 1, 1ms, 1ms, Bytes{1000});
  const auto busy = b.block(1, 20ms);
  b.after(message.recv, busy);
  const Plan plan = b.build();
  const OpTimes times = play(plan);
  const OpTime& send = times[index(b.id(message.send))];
  EXPECT_GE(send.start, times[index(b.id(busy))].end);
  EXPECT_EQ(send.bound_kind, BoundKind::rendezvous);
  EXPECT_EQ(send.bound_by, b.id(message.recv));
  EXPECT_EQ(times[index(b.id(message.recv))].bound_by, b.id(busy));
  EXPECT_EQ(wrong_, 0);
}

RANKS_TEST(EngineTest, DecoupledReceivesArePostedBeforeTheirTurn) {
  NEEDS_RANKS(2);
  harness::PlanBuilder b = builder();
  const auto message = b.message(0, 1, 1ms, 1ms, Bytes{1 << 20});
  const auto busy = b.block(1, 100ms);
  const Plan plan = b.build();
  const OpTimes times = play(plan);
  EXPECT_LT(times[index(b.id(message.recv))].end, times[index(b.id(busy))].end);
}

RANKS_TEST(EngineTest, RanksThatShareALinkTakeTurns) {
  NEEDS_RANKS(4);
  harness::PlanBuilder b = builder();
  std::vector<harness::PlanBuilder::Message> messages;
  for (int i = 0; i < 6; ++i)
    messages.push_back(b.message(i % 2, 2 + i % 2, 2ms, 1ms, Bytes{1000}, {"link a>b"}));
  const Plan plan = b.build();
  const OpTimes times = play(plan, {}, 2);
  std::vector<OpTime> sends;
  for (const auto& message : messages) sends.push_back(times[index(b.id(message.send))]);
  std::ranges::sort(sends, {}, &OpTime::start);
  for (std::size_t i = 1; i < sends.size(); ++i)
    EXPECT_GE(sends[i].start, sends[i - 1].end) << "one clock: ranks of one host";
  EXPECT_GE(sends.back().end - sends.front().start, 12ms);
  EXPECT_EQ(leases_, 6);
  EXPECT_EQ(wrong_, 0);
}

/// By when its inputs were there, as the simulator serves: not by when the message before it in its
/// lane began. a, b and c queue for the interface; d, ready last, has a lane to itself.
RANKS_TEST(EngineTest, AnInterfaceServesTheMessageThatWasReadyFirst) {
  NEEDS_RANKS(3);
  harness::PlanBuilder b = builder();
  std::vector<harness::PlanBuilder::Message> messages;
  for (int i = 0; i < 4; ++i) {
    const auto block = b.block(0, 2ms, MicrobatchId{i});
    messages.push_back(b.message(0, i < 3 ? 1 : 2, 20ms, 1ms, Bytes{1000}, {"egress 0"}));
    b.after(messages.back().send, block);
  }
  const Plan plan = b.build();
  const OpTimes times = play(plan);
  for (std::size_t i = 1; i < messages.size(); ++i)
    EXPECT_GE(times[index(b.id(messages[i].send))].start,
              times[index(b.id(messages[i - 1].send))].end)
        << i;
}

RANKS_TEST(EngineTest, CollectivesMeetExchangeAndHold) {
  std::vector<int> members;
  for (int rank = 0; rank < ranks().count(); ++rank) members.push_back(rank);
  harness::PlanBuilder b = builder();
  const auto late = b.block(0, 10ms);
  std::vector<std::vector<harness::PlanBuilder::Handle>> groups;
  for (const CollectiveKind kind : every<CollectiveKind>())
    groups.push_back(b.collective(kind, members, 4ms, Bytes{10'000}));
  b.after(groups.front().front(), late);
  const Plan plan = b.build();
  const OpTimes times = play(plan, {}, 2);
  for (const auto& group : groups) {
    for (const auto member : group) {
      const OpTime& time = times[index(b.id(member))];
      EXPECT_GE(time.start, times[index(b.id(late))].end) << "nobody starts before the last came";
      EXPECT_GE(time.end - time.start, 4ms);
    }
  }
  EXPECT_EQ(wrong_, 0) << "values are checked";
}

RANKS_TEST(EngineTest, WithoutEmulationNothingIsHeld) {
  NEEDS_RANKS(2);
  harness::PlanBuilder b = builder();
  std::vector<harness::PlanBuilder::Message> messages;
  for (int i = 0; i < 4; ++i) messages.push_back(b.message(0, 1, 10s, 10s, Bytes{1 << 20}));
  const Plan plan = b.build();
  engine::EngineOptions options;
  options.emulation = engine::Emulation::off;
  const OpTimes times = play(plan, options);
  for (const auto& message : messages) {
    const OpTime& recv = times[index(b.id(message.recv))];
    EXPECT_LT(recv.end - recv.start, 10s);
  }
  EXPECT_EQ(messages_, 4);
  EXPECT_EQ(wrong_, 0);
}

RANKS_TEST(EngineTest, ManyMessagesBeyondTheWindowOfReceives) {
  NEEDS_RANKS(2);
  constexpr int kMessages = 200;
  harness::PlanBuilder b = builder();
  for (int i = 0; i < kMessages; ++i) {
    (void)b.message(0, 1, Duration::zero(), Duration::zero(), Bytes{1 << 20});
    (void)b.message(1, 0, Duration::zero(), Duration::zero(), Bytes{i});
  }
  const Plan plan = b.build();
  play(plan, {}, 3);
  EXPECT_EQ(messages_, 2 * kMessages);
  EXPECT_EQ(wrong_, 0);
}

}  // namespace
}  // namespace longhaul::testing
