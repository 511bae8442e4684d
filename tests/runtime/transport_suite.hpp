#pragma once

// Every transport passes these tests: written once, against the interface. Whoever includes this
// first defines the list of kinds, in longhaul::testing:
//   using TransportKinds = ::testing::Types<...>;
// A kind has `static std::string why_not()` (why it is not between these ranks; empty: it is),
// `static std::unique_ptr<Transport> make(below)` (which may
// put a transport that it uses into `below`), and `Memory`,
// where its payloads lie: made of a size in bytes, with span(), write(bytes) and read().

#include "transport_fixture.hpp"

namespace longhaul::testing {

TYPED_TEST_SUITE(TransportTest, TransportKinds);

RANKS_TYPED_TEST(TransportTest, MovesBytesSmallAndLarge) {
  for (const std::size_t size : {std::size_t{1}, std::size_t{4096}, std::size_t{1} << 20U}) {
    const std::vector<std::uint8_t> out(size, static_cast<std::uint8_t>(this->self() + 1));
    std::vector<std::uint8_t> in(size, 0);
    const auto received = this->transport_->receive(this->previous(), 3, this->writable(in));
    const auto sent = this->transport_->send(this->next(), 3, this->bytes(out));
    this->transport_->ring(this->next());
    EXPECT_EQ(this->finish({received, sent})[received], size);
    EXPECT_THAT(in, ::testing::Each(static_cast<int>(this->previous()) + 1));
  }
}

RANKS_TYPED_TEST(TransportTest, KeepsTheOrderOfOneTagAndTellsTagsApart) {
  const std::array<std::array<int, 1>, 4> out{{{10}, {11}, {20}, {21}}};
  std::array<std::array<int, 1>, 4> in{};
  std::vector<Ticket> tickets;
  // Tag 2 is received before tag 1, though it is sent behind it.
  for (const std::size_t i : {2, 3, 0, 1})
    tickets.push_back(
        this->transport_->receive(this->previous(), i < 2 ? 1 : 2, this->writable(in[i])));
  for (std::size_t i = 0; i < out.size(); ++i)
    tickets.push_back(this->transport_->send(this->next(), i < 2 ? 1 : 2, this->bytes(out[i])));
  this->transport_->ring(this->next());
  this->finish(tickets);
  EXPECT_EQ(in, out);
}

RANKS_TYPED_TEST(TransportTest, ReportsWhatNobodyReceived) {
  const std::array<int, 1> word{1};
  EXPECT_EQ(this->transport_->unclaimed(), 0);
  this->ranks().world().barrier();
  this->finish({this->transport_->send(this->next(), 9, this->bytes(word))});
  this->ranks().world().barrier();
  EXPECT_EQ(this->transport_->unclaimed(), 1);
}

RANKS_TYPED_TEST(TransportTest, MovesPayloadsOfAllSizes) {
  // Around the sizes at which ways change: nothing, a byte, a page, pieces of 4 MiB.
  const std::vector<std::size_t> sizes{
      0, 1, 7, 4096, 1 << 20, 4 << 20U, (4U << 20U) + 1, (9U << 20U) + 13};
  for (std::size_t i = 0; i < sizes.size(); ++i) {
    auto in = this->receive(this->previous(), 3, sizes[i], {});
    auto out = this->send(this->next(), 3, this->pattern(this->ranks().self(), i, sizes[i]), {});
    auto done = this->finish({in.ticket, out.ticket});
    EXPECT_EQ(done[in.ticket], sizes[i]);
    EXPECT_EQ(in.memory.read(), this->pattern(this->previous(), i, sizes[i])) << sizes[i];
  }
}

RANKS_TYPED_TEST(TransportTest, APayloadMayBeShorterThanItsRoom) {
  auto in = this->receive(this->previous(), 3, 9000, {});
  const Bytes8 mine = this->pattern(this->ranks().self(), 0, 1234);
  auto out = this->send(this->next(), 3, mine, {});
  EXPECT_EQ(this->finish({in.ticket, out.ticket})[in.ticket], 1234U);
  Bytes8 got = in.memory.read();
  got.resize(1234);
  EXPECT_EQ(got, this->pattern(this->previous(), 0, 1234));
}

// Both neighbours at once, several lanes, some tags twice: each receive gets its own.
RANKS_TYPED_TEST(TransportTest, KeepsPayloadsOfManyLanesApart) {
  constexpr std::uint32_t kLanes = 5, kEach = 6;
  const auto size = [](std::uint64_t number) { return 100 + 7777 * (number % 7); };
  const auto tag = [](std::uint32_t lane, std::uint32_t i) {
    return static_cast<int>(lane * 10 + i / 2);
  };
  using Each = typename TransportTestOnRank<Kind>::Moving;
  std::vector<Each> received, sent;
  std::vector<Bytes8> expected;
  std::vector<Ticket> tickets;
  for (const bool forwards : {true, false}) {
    const Rank from = forwards ? this->previous() : this->next();
    const Rank to = forwards ? this->next() : this->previous();
    const std::uint32_t first = forwards ? 0 : kLanes;
    for (std::uint32_t i = 0; i < kEach; ++i)
      for (std::uint32_t at = first; at < first + kLanes; ++at) {
        const std::uint64_t number = at * 100 + i;
        received.push_back(this->receive(from, tag(at, i), size(number), this->lane(at)));
        expected.push_back(this->pattern(from, number, size(number)));
        tickets.push_back(received.back().ticket);
        const Bytes8 mine = this->pattern(this->ranks().self(), number, size(number));
        sent.push_back(this->send(to, tag(at, i), mine, this->lane(at)));
        tickets.push_back(sent.back().ticket);
      }
  }
  this->finish(tickets);
  for (std::size_t i = 0; i < received.size(); ++i)
    EXPECT_EQ(received[i].memory.read(), expected[i]) << "message " << i;
}

// Receives posted in another order than the sends, and some only behind them.
RANKS_TYPED_TEST(TransportTest, FindsTheReceiveOfAPayloadByItsTag) {
  const auto of = [&](Rank from, int tag) {
    return this->pattern(from, static_cast<std::uint64_t>(tag), 500);
  };
  using Each = typename TransportTestOnRank<Kind>::Moving;
  std::vector<Each> sent;
  std::vector<Ticket> tickets;
  std::map<int, Each> received;
  received.emplace(7, this->receive(this->previous(), 7, 500, this->lane(1)));
  for (const int tag : {5, 6, 7}) {
    sent.push_back(this->send(this->next(), tag, of(this->ranks().self(), tag), this->lane(1)));
    tickets.push_back(sent.back().ticket);
  }
  for (const int tag : {6, 5})
    received.emplace(tag, this->receive(this->previous(), tag, 500, this->lane(1)));
  for (const auto& [tag, moving] : received) tickets.push_back(moving.ticket);
  this->finish(tickets);
  for (auto& [tag, moving] : received)
    EXPECT_EQ(moving.memory.read(), of(this->previous(), tag)) << "tag " << tag;
}

// By the transport's own stamps: a lane is held no shorter than it was told to.
RANKS_TYPED_TEST(TransportTest, HoldsLanesWhereItSaysSo) {
  using namespace std::chrono_literals;
  if (!this->transport_->holds_lanes()) return;
  for (int i = 0; i < 3; ++i) {
    const TimePoint begin = now();
    const LanePace pace{LaneId{4}, 3ms, begin};
    auto in = this->receive(this->previous(), 3, 64, pace);
    auto out = this->send(this->next(), 3, this->pattern(this->ranks().self(), 1, 64), pace);
    std::size_t over = 0;
    while (over < 2) {
      std::vector<Completion> done;
      this->transport_->advance(done);
      for (const Completion& completion : done) {
        if (completion.ticket != in.ticket && completion.ticket != out.ticket) continue;
        ++over;
        const Duration error = 100us;  // of one clock against the other
        EXPECT_GE(completion.over, begin + pace.hold - error);
        EXPECT_LE(completion.over, now() + error);
        EXPECT_LE(completion.transferred, completion.over + error);
      }
    }
  }
}

RANKS_TYPED_TEST(TransportTest, GathersAndReducesWholeNumbers) {
  this->transport_->prepare_group(this->everyone());
  for (const std::size_t share : {1, 1000})
    this->template check_collectives<std::int64_t>(
        ExchangeType::i64, share, [](std::int64_t x) { return x; },
        [](std::size_t rank, std::size_t i) {
          return (std::int64_t{1} << 40U) + static_cast<std::int64_t>(1000 * rank + i);
        });
}

RANKS_TYPED_TEST(TransportTest, GathersAndReducesFloats) {
  this->transport_->prepare_group(this->everyone());
  this->template check_collectives<float>(
      ExchangeType::f32, 777, [](std::int64_t x) { return 0.5F * static_cast<float>(x); },
      [](std::size_t rank, std::size_t i) { return static_cast<std::int64_t>(3 * rank + i); });
}

RANKS_TYPED_TEST(TransportTest, GathersAndReducesHalvesOfFloats) {
  this->transport_->prepare_group(this->everyone());
  this->template check_collectives<std::uint16_t>(
      ExchangeType::bf16, 333, [](std::int64_t x) { return to_bf16(static_cast<float>(x)); },
      [](std::size_t rank, std::size_t i) { return static_cast<std::int64_t>(rank + i % 20); });
}

}  // namespace longhaul::testing
