// Payloads in pieces over a host that is done with what it was given in any order.
#include "comm/piece_transport.hpp"

#include <algorithm>
#include <cstring>
#include <map>

#include <gmock/gmock.h>

#include "base/index.hpp"
#include "base/random.hpp"
#include "support/ranks/ranks_fixture.hpp"

namespace longhaul::comm {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

constexpr std::size_t kPiece = 16;

/// A host without others: what was posted stays until a test says that it is done.
class HeldTransport final : public Transport {
public:
  struct Posted {
    RequestId request{};
    Rank peer{};
    int tag = 0;
    std::span<const std::byte> data;  ///< of a send
    std::span<std::byte> buffer;      ///< of a receive
  };

  [[nodiscard]] Rank self() const override { return Rank{0}; }
  [[nodiscard]] int ranks() const override { return 2; }
  [[nodiscard]] RequestId send(Rank to, int tag, std::span<const std::byte> data) override {
    sends.push_back({RequestId{next_}, to, tag, data, {}});
    return RequestId{next_++};
  }
  [[nodiscard]] RequestId receive(Rank from, int tag, std::span<std::byte> buffer) override {
    receives.push_back({RequestId{next_}, from, tag, {}, buffer});
    return RequestId{next_++};
  }
  [[nodiscard]] int tags() const override { return 100; }
  void ring_doorbell(Rank /*to*/) override {}
  [[nodiscard]] RequestId collective(CollectiveKind /*kind*/, std::span<const Rank> /*members*/,
                                     const Exchange& /*exchange*/) override {
    return RequestId{next_++};
  }
  void prepare_group(std::span<const Rank> /*members*/) override {}
  void advance(std::vector<Completion>& done) override {
    done.insert(done.end(), done_.begin(), done_.end());
    done_.clear();
  }
  [[nodiscard]] bool wants_look() const override { return false; }
  [[nodiscard]] bool wants_polling() const override { return false; }
  [[nodiscard]] std::int64_t unclaimed() override { return 0; }

  void sent(std::size_t number) { done_.push_back({sends[number].request, 0}); }
  void received(std::size_t number, std::size_t size) {
    done_.push_back({receives[number].request, size});
  }

  std::vector<Posted> sends, receives;

private:
  std::uint32_t next_ = 0;
  std::vector<Completion> done_;
};

class Pieces : public ::testing::Test {
protected:
  std::vector<RequestId> look() {
    std::vector<Completion> done;
    pieces_.advance(done);
    std::vector<RequestId> requests;
    for (const Completion& each : done) requests.push_back(each.request);
    return requests;
  }
  std::vector<std::byte> data_ = std::vector<std::byte>(200);
  [[nodiscard]] std::span<std::byte> bytes(std::size_t size) {
    return std::span{data_}.first(size);
  }

  HeldTransport host_;
  PieceTransport pieces_{host_, kPiece};
};

// Of two payloads that one rank sends another with one tag the second may have left first: it is
// that one that is done, and the first one's buffer is not.
TEST_F(Pieces, EndTheSendThatTheyBelongTo) {
  const RequestId first = pieces_.send_payload(Rank{1}, 7, bytes(20));  // of 16 and 4 bytes
  const RequestId second = pieces_.send_payload(Rank{1}, 7, bytes(3));  // of 3
  ASSERT_EQ(host_.sends.size(), 3U);
  host_.sent(2);
  EXPECT_THAT(look(), ElementsAre(second));
  host_.sent(1);
  EXPECT_THAT(look(), IsEmpty()) << "its first piece has not left";
  host_.sent(0);
  EXPECT_THAT(look(), ElementsAre(first));
}

// Receives of one rank with several tags come in any order, and each is its own.
TEST_F(Pieces, EndTheReceiveOfTheirTag) {
  const RequestId seven = pieces_.receive_payload(Rank{1}, 7, bytes(20));
  const RequestId eight = pieces_.receive_payload(Rank{1}, 8, bytes(20));
  ASSERT_EQ(host_.receives.size(), 2U) << "a piece of each";
  host_.received(1, kPiece);
  EXPECT_THAT(look(), IsEmpty());
  ASSERT_EQ(host_.receives.size(), 3U);
  EXPECT_EQ(host_.receives[2].tag, 8);
  host_.received(2, 4);
  EXPECT_THAT(look(), ElementsAre(eight)) << "the tag that was posted later";
  host_.received(0, kPiece);
  EXPECT_THAT(look(), IsEmpty());
  ASSERT_EQ(host_.receives.size(), 4U);
  host_.received(3, 4);
  EXPECT_THAT(look(), ElementsAre(seven));
}

// Whatever the order in which the host is done: each payload ends once, with its last piece.
TEST_F(Pieces, EndEachSendOnceInAnyOrder) {
  for (std::uint64_t seed = 1; seed <= 200; ++seed) {
    SCOPED_TRACE(seed);
    Random random{seed};
    HeldTransport host;
    PieceTransport pieces{host, kPiece};
    std::map<RequestId, std::size_t> open;  // pieces that have not left
    std::vector<RequestId> payload_of;      // by piece
    for (std::int64_t i = random.between(1, 6); i > 0; --i) {
      const auto size = to_size(random.between(0, 100));
      const int tag = static_cast<int>(random.between(0, 1));
      const std::size_t before = host.sends.size();
      const RequestId payload = pieces.send_payload(Rank{1}, tag, bytes(size));
      open[payload] = host.sends.size() - before;
      payload_of.resize(host.sends.size(), payload);
    }
    std::vector<std::size_t> order(host.sends.size());
    for (std::size_t i = 0; i < order.size(); ++i) order[i] = i;
    for (std::size_t i = order.size(); i > 1; --i)
      std::swap(order[i - 1], order[to_size(random.between(0, static_cast<std::int64_t>(i) - 1))]);
    for (const std::size_t piece : order) {
      host.sent(piece);
      std::vector<Completion> done;
      pieces.advance(done);
      const bool is_last = --open.at(payload_of[piece]) == 0;
      ASSERT_EQ(done.size(), is_last ? 1U : 0U);
      if (is_last) {
        EXPECT_EQ(done.front().request, payload_of[piece]);
      }
    }
    EXPECT_EQ(host.sends.size(), payload_of.size()) << "nothing is posted twice";
  }
}

}  // namespace
}  // namespace longhaul::comm
