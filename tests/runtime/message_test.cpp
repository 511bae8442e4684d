#include "runtime/message.hpp"

#include <gtest/gtest.h>

#include "support/plan_builder.hpp"

namespace longhaul {
namespace {

using Verdict = Payloads::Verdict;

MessageId some_id(std::uint32_t send) {
  MessageId id;
  id.send = send;
  id.iteration = 3;
  id.size_bytes = 1000;
  return id;
}

TEST(Payloads, CutsNominalSizesAtTheCap) {
  const Payloads payloads{1, Bytes{4096}};
  EXPECT_EQ(payloads.bytes_for(Bytes{1000}), 1000u);
  EXPECT_EQ(payloads.bytes_for(Bytes{1 << 30}), 4096u);
  EXPECT_EQ(payloads.bytes_for(Bytes{0}), sizeof(MessageId));
}

TEST(Payloads, KnowsItsOwn) {
  const Payloads sender{7, Bytes{4096}};
  const Payloads receiver{7, Bytes{4096}};
  std::vector<std::byte> payload(1000);
  sender.fill(some_id(5), payload);
  EXPECT_EQ(receiver.check(some_id(5), payload), Verdict::right);
}

TEST(Payloads, TellsAnotherMessageFromACorruptedOne) {
  const Payloads payloads{7, Bytes{4096}};
  std::vector<std::byte> payload(1000);
  payloads.fill(some_id(5), payload);
  EXPECT_EQ(payloads.check(some_id(6), payload), Verdict::wrong_message);
  for (const std::size_t at : {sizeof(MessageId), payload.size() - 1}) {
    auto damaged = payload;
    damaged[at] ^= std::byte{1};
    EXPECT_EQ(payloads.check(some_id(5), damaged), Verdict::corrupted) << "byte " << at;
  }
  EXPECT_EQ(payloads.check(some_id(5), std::span{payload}.first(10)), Verdict::corrupted);
}

TEST(Payloads, DifferFromMessageToMessage) {
  const Payloads payloads{7, Bytes{4096}};
  std::vector<std::byte> first(1000), second(1000);
  payloads.fill(some_id(5), first);
  payloads.fill(some_id(6), second);
  EXPECT_FALSE(std::equal(first.begin() + sizeof(MessageId), first.end(),
                          second.begin() + sizeof(MessageId)));
}

TEST(MessageId, NamesBlockSendIterationAndPlace) {
  bench::PlanBuilder builder{"two messages", 2};
  (void)builder.message(0, 1, {}, {}, Bytes{10});
  const auto second = builder.message(0, 1, {}, {}, Bytes{20});
  const Plan plan = builder.build();
  const MessageId id = message_id(plan, builder.id(second.send), 4, 9);
  EXPECT_EQ(id.run, 4u);
  EXPECT_EQ(id.iteration, 9);
  EXPECT_EQ(id.sequence, 1u);
  EXPECT_EQ(id.microbatch, 1);
  EXPECT_EQ(id.size_bytes, 20);
  EXPECT_EQ(id.send, static_cast<std::uint32_t>(builder.id(second.send)));
}

}  // namespace
}  // namespace longhaul
