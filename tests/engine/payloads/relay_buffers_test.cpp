#include "engine/payloads/relay_buffers.hpp"

#include <array>

#include "device/cpu_devices.hpp"
#include "engine/engine.hpp"
#include "engine/verify.hpp"
#include "engine/watchdog/op_events.hpp"
#include "support/ranks/ranks_fixture.hpp"
#include "support/ranks/relayed_message.hpp"

namespace longhaul::testing {
namespace {

using namespace std::chrono_literals;

TEST(Forwards, KnowsWhatARelayTakesOn) {
  RelayedMessage way{0};
  const Plan plan = way.builder.build();
  const auto id = [&](auto handle) { return way.builder.id(handle); };
  const engine::RelayTable sender{plan, Rank{0}};
  const engine::RelayTable relay{plan, Rank{2}};
  const engine::RelayTable far_relay{plan, Rank{3}};
  const engine::RelayTable receiver{plan, Rank{1}};
  EXPECT_EQ(sender.recv_before(id(way.own.send)), kNone<OpId>) << "it makes its piece";
  EXPECT_EQ(relay.send_after(id(way.scatter.recv)), id(way.wan.send));
  EXPECT_EQ(relay.recv_before(id(way.wan.send)), id(way.scatter.recv));
  EXPECT_EQ(far_relay.send_after(id(way.wan.recv)), id(way.gather.send));
  EXPECT_EQ(receiver.send_after(id(way.gather.recv)), kNone<OpId>) << "it stays here";
}

TEST(Relays, HandWhatWasKeptOverOnce) {
  RelayedMessage way{0};
  const Plan plan = way.builder.build();
  engine::RelayBuffers relays{plan, Rank{2}};
  std::vector<std::byte> bytes(3, std::byte{9});
  relays.keep(way.builder.id(way.scatter.recv), {engine::Payload{bytes, nullptr}, true});
  const engine::RelayBuffers::Kept kept = relays.take(way.builder.id(way.wan.send));
  EXPECT_EQ(kept.payload.bytes.data(), bytes.data());
  EXPECT_EQ(kept.payload.bytes.size(), bytes.size());
  EXPECT_TRUE(kept.came_wrong);
}

TEST(VerifyPieces, ABlockThatWaitsForOnePieceOfTwoIsOutOfOrder) {
  RelayedMessage way{0};
  Plan plan = way.builder.build();
  OpTimes times(plan.ops.size());
  EXPECT_EQ(engine::verify_order(plan, Rank{1}, times).out_of_order, 0);
  Op& consumer = plan.ops[index(way.builder.id(way.consumer))];
  const OpId one_piece = plan.after_of(way.builder.id(way.consumer)).front();
  consumer.after_count = 0;
  plan.add_after(consumer, one_piece);
  EXPECT_EQ(engine::verify_order(plan, Rank{1}, times).out_of_order, 1);
}

class RelayedRun : public OnRanks {
protected:
  /// Runs the plan once; what all ranks counted, and what each found wrong, by rank.
  void play(const Plan& plan, const std::string& fault = {}) {
    device::TimedDevice device;
    engine::EngineOptions options;
    if (!fault.empty()) options.fault = engine::parse_fault(fault);
    ranks().watchdog().watch(&plan, 10s);
    engine::Engine engine{plan, ranks(), device, options};
    const engine::IterationResult result = engine.run(0);
    ranks().watchdog().watch(nullptr, {});
    const auto sum = [&](std::int64_t mine) { return ranks().world().sum(mine); };
    for (std::size_t leg = 0; leg < 4; ++leg) of_leg_[leg] = sum(result.checks.of_leg[leg]);
    relayed_ = sum(result.checks.relayed);
    relayed_bytes_ = sum(result.checks.relayed_bytes);
    blocks_ = sum(result.checks.blocks);
    wrong_ = sum(result.checks.wrong());
    corrupted_ = sum(result.checks.corrupted);
    found_ = result.wrong;
  }
  std::array<std::int64_t, 4> of_leg_{};
  std::int64_t relayed_ = 0, relayed_bytes_ = 0, blocks_ = 0, wrong_ = 0, corrupted_ = 0;
  std::vector<engine::WrongMessage> found_;  ///< on this rank
};

RANKS_TEST(RelayedRun, EveryPieceIsCheckedOnEveryLeg) {
  NEEDS_RANKS(4);
  constexpr int kMessages = 40;
  RelayedMessage way{0, kMessages, ranks().count()};
  for (int i = 0; i < kMessages; ++i) way.add(1, i, 100us);
  const Plan plan = way.builder.build();
  play(plan);
  EXPECT_EQ(of_leg_, (std::array<std::int64_t, 4>{0, 80, 160, 80}));
  EXPECT_EQ(relayed_, 160) << "each piece that another takes is relayed at both ends";
  EXPECT_EQ(relayed_bytes_, 160 * 5000);
  EXPECT_EQ(blocks_, 4 * kMessages);
  EXPECT_EQ(wrong_, 0);
}

RANKS_TEST(RelayedRun, WhatARelayCorruptsIsFoundByTheNextReceiver) {
  NEEDS_RANKS(4);
  RelayedMessage way{0, 3, ranks().count()};
  const Plan plan = way.builder.build();
  for (const char* fault : {"corrupt@2:relay1", "mixup@2:relay1"}) {
    play(plan, fault);
    EXPECT_EQ(wrong_, 2) << "the far relay and the receiver";
    EXPECT_TRUE(everywhere(found_.size() == (self() == 3 || self() == 1 ? 1u : 0u)));
    if (found_.empty()) continue;
    const Op& op = plan.op(found_.front().recv);
    EXPECT_EQ(op.leg, self() == 3 ? MessageLeg::wan : MessageLeg::gather);
    EXPECT_EQ(op.microbatch, 8) << "the second message";
    EXPECT_EQ(found_.front().came_wrong_to_sender, self() == 1);
  }
}

RANKS_TEST(RelayedRun, WhatTheOwnerHurtsIsFoundByTheRelayAndStaysHurt) {
  NEEDS_RANKS(4);
  RelayedMessage way{0, 3, ranks().count()};
  const Plan plan = way.builder.build();
  play(plan, "corrupt@0:scatter0");
  EXPECT_EQ(corrupted_, 3) << "nobody makes it good on its way";
  EXPECT_TRUE(self() != 2 || (found_.size() == 1 && !found_.front().came_wrong_to_sender));
}

RANKS_TEST(RelayedRun, AHangIsTracedToWhereThePieceGotLost) {
  NEEDS_RANKS(4);
  RelayedMessage way{0, 1, ranks().count()};
  const Plan plan = way.builder.build();
  const auto id = [&](auto handle) { return way.builder.id(handle); };
  const engine::OpEvents events{plan, ranks().host_ranks()};
  if (self() == 0) {
    for (const auto& message : {way.own, way.scatter, way.wan, way.gather})
      events.note(id(message.recv), comm::OpEvent::posted);
    const auto held_up = [&] {
      return engine::find_held_up(plan, events, ranks().host_ranks(), id(way.consumer));
    };
    EXPECT_EQ(held_up().op, id(way.producer)) << "nothing has begun";
    for (const auto op : {way.producer, way.own.send, way.own.recv, way.scatter.send,
                          way.scatter.recv, way.wan.send})
      events.note(id(op), comm::OpEvent::ended);
    EXPECT_EQ(held_up().op, id(way.wan.recv));
    EXPECT_STREQ(held_up().why, "sent, and never received");
    events.note(id(way.wan.recv), comm::OpEvent::none);
    EXPECT_STREQ(held_up().why, "not posted");
    events.note(id(way.wan.recv), comm::OpEvent::ended);
    EXPECT_EQ(held_up().op, id(way.gather.send));
    EXPECT_STREQ(held_up().why, "ready, and not started");
    events.note(id(way.gather.send), comm::OpEvent::started);
    EXPECT_EQ(held_up().op, id(way.gather.recv));
    EXPECT_STREQ(held_up().why, "sent, and never received");
  }
  ranks().world().barrier();
}

RANKS_TEST(RelayedRun, AHangIsTracedToWhoHoldsTheLink) {
  NEEDS_RANKS(4);
  harness::PlanBuilder builder{"two senders", ranks().count()};
  const auto stuck = builder.message(0, 2, 1us, 1us, Bytes{1}, {"ingress 2"});
  const auto waiting = builder.message(1, 2, 1us, 1us, Bytes{1}, {"ingress 2"});
  const auto first = builder.block(2, 1us);
  const auto second = builder.block(2, 1us);
  builder.after(first, waiting.recv);
  const Plan plan = builder.build();
  const engine::OpEvents events{plan, ranks().host_ranks()};
  if (self() == 0) {
    events.note(builder.id(waiting.recv), comm::OpEvent::posted);
    events.note(builder.id(stuck.send), comm::OpEvent::started);
    const engine::HeldUp found =
        engine::find_held_up(plan, events, ranks().host_ranks(), builder.id(second));
    EXPECT_EQ(found.op, builder.id(stuck.recv))
        << "the block in front waits for a message behind it";
    EXPECT_STREQ(found.why, "not posted");
  }
  ranks().world().barrier();
}

}  // namespace
}  // namespace longhaul::testing
