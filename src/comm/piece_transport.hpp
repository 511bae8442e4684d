#pragma once

#include <deque>
#include <map>
#include <unordered_map>
#include <utility>
#include <vector>

#include "comm/transport.hpp"

namespace longhaul::comm {

/// Payloads in the hosts' memory, cut into pieces, so that no look at the host's transport copies
/// more than a piece of them: who times messages looks between two pieces. A piece that is shorter
/// than the others is the last. A payload is received piece by piece, one posted at a time; its
/// sender posts several. Everything else is the host's.
class PieceTransport final : public Transport {
public:
  static constexpr std::size_t kPieceBytes = std::size_t{512} << 10U;

  /// `host` outlives this.
  explicit PieceTransport(Transport& host, std::size_t piece_bytes = kPieceBytes)
      : host_{host}, piece_{piece_bytes} {}

  [[nodiscard]] Rank self() const override { return host_.self(); }
  [[nodiscard]] int ranks() const override { return host_.ranks(); }
  [[nodiscard]] RequestId send(Rank to, int tag, std::span<const std::byte> data) override {
    return host_.send(to, tag, data);
  }
  [[nodiscard]] RequestId receive(Rank from, int tag, std::span<std::byte> buffer) override {
    return host_.receive(from, tag, buffer);
  }
  [[nodiscard]] int tags() const override { return host_.tags(); }
  void ring_doorbell(Rank to) override { host_.ring_doorbell(to); }
  [[nodiscard]] RequestId send_payload(Rank to, int tag, std::span<const std::byte> data,
                                       const cuda::LanePace& pace = {}) override;
  [[nodiscard]] RequestId receive_payload(Rank from, int tag, std::span<std::byte> buffer,
                                          const cuda::LanePace& pace = {}) override;
  [[nodiscard]] TimePoint next_event() const override { return host_.next_event(); }
  [[nodiscard]] RequestId collective(CollectiveKind kind, std::span<const Rank> members,
                                     const Exchange& exchange) override {
    return host_.collective(kind, members, exchange);
  }
  void prepare_group(std::span<const Rank> members) override { host_.prepare_group(members); }

  /// Adds what the host has; where that is nothing, goes on with one payload by one piece.
  void advance(std::vector<Completion>& done) override;
  [[nodiscard]] bool wants_look() const override { return goes_on_ || host_.wants_look(); }
  [[nodiscard]] bool wants_polling() const override { return host_.wants_polling(); }
  [[nodiscard]] std::int64_t unclaimed() override { return host_.unclaimed(); }

private:
  /// Messages of one way arrive in order: its first payload alone is under way.
  using Way = std::pair<Rank, int>;  ///< peer and tag
  struct Outgoing {
    RequestId request{};
    std::span<const std::byte> data;
    std::size_t posted = 0;  ///< bytes
    bool all_posted = false;
    int unsent = 0;  ///< pieces
  };
  struct Incoming {
    RequestId request{};
    std::span<std::byte> buffer;
    std::size_t received = 0;  ///< bytes
  };

  RequestId new_request();
  void post_sends(const Way& way);
  void post_receive(const Way& way);
  bool take_piece(const Completion& completion, std::vector<Completion>& done);
  void piece_sent(const Way& way, RequestId payload, std::vector<Completion>& done);
  void piece_received(const Way& way, std::size_t size, std::vector<Completion>& done);

  Transport& host_;
  std::size_t piece_;
  std::uint32_t next_request_ = 0;
  std::map<Way, std::deque<Outgoing>> outgoing_;
  std::map<Way, std::deque<Incoming>> incoming_;
  /// Pieces that leave, of the host, and the payload that each belongs to: the host may be done
  /// with them in any order.
  std::unordered_map<RequestId, std::pair<Way, RequestId>> sent_;
  std::unordered_map<RequestId, Way> received_;  ///< pieces that come: one of each way
  std::deque<Way> next_;                         ///< whose next piece can be received
  bool goes_on_ = false;                         ///< a piece has come since the last look
  std::vector<Completion> of_host_;
};

}  // namespace longhaul::comm
