#include "engine/payloads/message.hpp"

#include <gtest/gtest.h>

#include "support/ranks/relayed_message.hpp"

namespace longhaul::engine {
namespace {

using testing::RelayedMessage;

using MessageVerdict = Payloads::Verdict;

PayloadId some_id(std::int32_t microbatch) {
  PayloadId id;
  id.microbatch = MicrobatchId{microbatch};
  id.iteration = 3;
  id.size_bytes = 1000;
  return id;
}

TEST(Payloads, CutsNominalSizesAtTheCap) {
  const Payloads payloads{1, Bytes{4096}};
  EXPECT_EQ(payloads.bytes_for(Bytes{1000}), 1000u);
  EXPECT_EQ(payloads.bytes_for(Bytes{1 << 30}), 4096u);
  EXPECT_EQ(payloads.bytes_for(Bytes{0}), sizeof(PayloadId));
}

TEST(Payloads, KnowsItsOwn) {
  const Payloads sender{7, Bytes{4096}};
  const Payloads receiver{7, Bytes{4096}};
  std::vector<std::byte> payload(1000);
  sender.fill(some_id(5), payload);
  EXPECT_EQ(receiver.check(some_id(5), payload), MessageVerdict::right);
}

TEST(Payloads, TellsAnotherMessageFromACorruptedOne) {
  const Payloads payloads{7, Bytes{4096}};
  std::vector<std::byte> payload(1000);
  payloads.fill(some_id(5), payload);
  EXPECT_EQ(payloads.check(some_id(6), payload), MessageVerdict::wrong_message);
  for (const std::size_t at : {sizeof(PayloadId), payload.size() - 1}) {
    auto damaged = payload;
    damaged[at] ^= std::byte{1};
    EXPECT_EQ(payloads.check(some_id(5), damaged), MessageVerdict::corrupted) << "byte " << at;
  }
  EXPECT_EQ(payloads.check(some_id(5), std::span{payload}.first(10)), MessageVerdict::corrupted);
}

TEST(Payloads, DifferFromMessageToMessage) {
  const Payloads payloads{7, Bytes{4096}};
  std::vector<std::byte> first(1000), second(1000);
  payloads.fill(some_id(5), first);
  payloads.fill(some_id(6), second);
  EXPECT_FALSE(std::equal(first.begin() + sizeof(PayloadId), first.end(),
                          second.begin() + sizeof(PayloadId)));
}

TEST(Payloads, DifferInEveryFieldOfTheirId) {
  const Payloads payloads{7, Bytes{1 << 20}};
  const auto bytes_of = [&](const PayloadId& id) {
    std::vector<std::byte> payload(200);
    payloads.fill(id, payload);
    payload.erase(payload.begin(), payload.begin() + sizeof id);
    return payload;
  };
  std::vector<PayloadId> ids(9);
  ids[1].run = 1;
  ids[2].iteration = 1;
  ids[3].replica = 1;
  ids[4].chunk = ChunkId{1};
  ids[5].microbatch = MicrobatchId{1};
  ids[6].kind = 1;
  ids[7].piece = 1;
  ids[8].part = 1;
  for (std::size_t i = 0; i < ids.size(); ++i)
    for (std::size_t j = 0; j < i; ++j) EXPECT_NE(bytes_of(ids[i]), bytes_of(ids[j])) << i << j;
}

TEST(MessageHeader, NamesBlockSendIterationAndPlace) {
  harness::PlanBuilder builder{"two messages", 2};
  (void)builder.message(0, 1, {}, {}, Bytes{10});
  const auto second = builder.message(0, 1, {}, {}, Bytes{20});
  const Plan plan = builder.build();
  const MessageHeader header = message_header(plan, builder.id(second.send), 4, 9);
  EXPECT_EQ(header.payload.run, 4u);
  EXPECT_EQ(header.payload.iteration, 9);
  EXPECT_EQ(header.sequence, 1u);
  EXPECT_EQ(header.payload.microbatch, 1);
  EXPECT_EQ(header.payload.size_bytes, 20);
  EXPECT_EQ(header.send, static_cast<std::uint32_t>(builder.id(second.send)));
}

TEST(MessageHeader, NamesOnePayloadOnEveryLegOfItsWay) {
  testing::RelayedMessage way{0, 1};
  const Plan plan = way.builder.build();
  const PayloadId made = payload_id(plan, way.builder.id(way.scatter.send), 0, 5);
  EXPECT_EQ(made.replica, 0);
  EXPECT_EQ(made.piece, 1u);
  EXPECT_EQ(made.pieces, 2u);
  for (const auto& leg : {way.wan, way.gather}) {
    EXPECT_EQ(payload_id(plan, way.builder.id(leg.send), 0, 5), made);
    EXPECT_FALSE(same_message(message_header(plan, way.builder.id(leg.send), 0, 5),
                              message_header(plan, way.builder.id(way.scatter.send), 0, 5)))
        << "the header says which leg";
  }
  EXPECT_NE(payload_id(plan, way.builder.id(way.own.send), 0, 5), made);
  EXPECT_EQ(to_text(made), "F(chunk 0, microbatch 7) of replica 0, piece 1 of 2, iteration 5");
}

}  // namespace
}  // namespace longhaul::engine
