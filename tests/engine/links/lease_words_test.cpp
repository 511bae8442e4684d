#include "engine/links/lease_words.hpp"

#include <algorithm>

#include <gtest/gtest.h>

namespace longhaul::engine {
namespace {

using Kind = LeaseWord::Kind;

/// Between two hosts that are one rank's, which hands on what it sends.
class OneWord final : public comm::Transport {
public:
  [[nodiscard]] Rank self() const override { return Rank{0}; }
  [[nodiscard]] int ranks() const override { return 1; }
  [[nodiscard]] comm::RequestId send(Rank, int tag, std::span<const std::byte> data) override {
    EXPECT_EQ(tag, tag_);
    std::ranges::copy(data, buffer_.begin());
    return comm::RequestId{1};
  }
  [[nodiscard]] comm::RequestId receive(Rank, int tag, std::span<std::byte> buffer) override {
    tag_ = tag;
    buffer_ = buffer;
    return comm::RequestId{2};
  }
  [[nodiscard]] int tags() const override { return 2; }
  void ring_doorbell(Rank) override {}
  [[nodiscard]] comm::RequestId collective(CollectiveKind, std::span<const Rank>,
                                           const comm::Exchange&) override {
    return {};
  }
  void prepare_group(std::span<const Rank>) override {}
  void advance(std::vector<comm::Completion>&) override {}
  [[nodiscard]] bool wants_look() const override { return false; }
  [[nodiscard]] bool wants_polling() const override { return false; }
  [[nodiscard]] std::int64_t unclaimed() override { return 0; }

private:
  int tag_ = -1;
  std::span<std::byte> buffer_;
};

/// A link that was let go at 100 and seen so at 103, with a lag of 5, by a clock that is `ahead` of
/// ours; told at 110 and seen by us at 120, which is 120 + `ahead` there.
LinkTable::Grant told(Duration ahead, bool offsets_are_known) {
  const auto offset = [&](Duration of) {
    return offsets_are_known ? std::optional{of} : std::nullopt;
  };
  OneWord transport;
  LeaseWords theirs{transport, {0, 1}, offset(-ahead)};
  LeaseWords ours{transport, {0, 1}, offset(Duration{})};
  ours.expect_of_home(Rank{0});
  const LinkTable::Grant grant{
      Duration{100} + ahead, OpId{7}, {Duration{103} + ahead, Duration{108} + ahead}};
  theirs.send(Rank{0}, word_of(Kind::granted, OpId{9}, grant, Duration{110} + ahead),
              Duration{110} + ahead);
  EXPECT_FALSE(theirs.idle());
  std::optional<LeaseWords::Came> came;
  EXPECT_TRUE(theirs.take({comm::RequestId{1}}, Duration{120} + ahead, came));
  EXPECT_FALSE(came);
  EXPECT_TRUE(theirs.idle());
  EXPECT_FALSE(ours.take({comm::RequestId{3}}, Duration{120}, came)) << "it is none";
  EXPECT_TRUE(ours.take({comm::RequestId{2}}, Duration{120}, came));
  EXPECT_TRUE(ours.idle());
  EXPECT_EQ(came->word.send, 9U);
  return grant_of(*came);
}

TEST(LeaseWords, AreOfOurClockWhereOffsetsAreKnown) {
  for (const Duration ahead : {Duration{0}, Duration{5000}}) {
    const LinkTable::Grant grant = told(ahead, true);
    EXPECT_EQ(grant.free, TimePoint{100});
    EXPECT_EQ(grant.holder, OpId{7});
    EXPECT_EQ(grant.let_go.seen, TimePoint{103});
    EXPECT_EQ(grant.let_go.lag(), Duration{5});
  }
}

// Then it counts as sent when it was seen: ten later.
TEST(LeaseWords, CountFromTheirArrivalWhereOffsetsAreNotKnown) {
  for (const Duration ahead : {Duration{0}, Duration{5000}}) {
    const LinkTable::Grant grant = told(ahead, false);
    EXPECT_EQ(grant.free, TimePoint{110});
    EXPECT_EQ(grant.let_go.seen, TimePoint{113});
    EXPECT_EQ(grant.let_go.lag(), Duration{5});
  }
}

// A clock that has drifted would have it come before it was sent.
TEST(LeaseWords, AreNeverSentAfterTheyCame) {
  const LinkTable::Grant grant = grant_of({Rank{1}, word_of(Kind::granted, OpId{0}, {}, {}), {}});
  EXPECT_EQ(grant.free, TimePoint{}) << "never held";
  OneWord transport;
  LeaseWords theirs{transport, {0, 1}, Duration{50}};
  LeaseWords ours{transport, {0, 1}, Duration{0}};
  ours.expect_of_client(Rank{0});
  LeaseWord asks;
  asks.kind = Kind::asks;
  theirs.send(Rank{0}, asks, Duration{110});
  std::optional<LeaseWords::Came> came;
  EXPECT_TRUE(ours.take({comm::RequestId{2}}, Duration{120}, came));
  EXPECT_EQ(came->sent, TimePoint{120});
}

}  // namespace
}  // namespace longhaul::engine
