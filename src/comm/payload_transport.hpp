#pragma once

#include <cstdint>
#include <deque>
#include <memory>
#include <unordered_map>
#include <vector>

#include "comm/payload_backend.hpp"

namespace longhaul::comm {

/// Messages of the host over the host's transport, payloads and their collectives another way. It
/// announces each payload by a message of the host, and finds the receive for what was announced;
/// a receive begins when both are there. A payload without a receive stays with its sender.
class PayloadTransport final : public Transport {
public:
  /// `host` outlives this and has no other user meanwhile.
  PayloadTransport(Transport& host, std::unique_ptr<PayloadBackend> way);
  ~PayloadTransport() override;

  [[nodiscard]] Rank self() const override { return host_.self(); }
  [[nodiscard]] int ranks() const override { return host_.ranks(); }
  [[nodiscard]] RequestId send(Rank to, int tag, std::span<const std::byte> data) override {
    return host_.send(to, tag, data);
  }
  [[nodiscard]] RequestId receive(Rank from, int tag, std::span<std::byte> buffer) override {
    return host_.receive(from, tag, buffer);
  }
  /// Fewer than the host's: the last ones are for announcements and the way's own messages.
  [[nodiscard]] int tags() const override { return tags_; }
  void ring_doorbell(Rank to) override { host_.ring_doorbell(to); }

  [[nodiscard]] RequestId send_payload(Rank to, int tag, std::span<const std::byte> data,
                                       const cuda::LanePace& pace = {}) override;
  [[nodiscard]] RequestId receive_payload(Rank from, int tag, std::span<std::byte> buffer,
                                          const cuda::LanePace& pace = {}) override;
  [[nodiscard]] bool holds_lanes() const override { return true; }
  [[nodiscard]] TimePoint next_event() const override { return way_->next_event(); }
  [[nodiscard]] RequestId collective(CollectiveKind kind, std::span<const Rank> members,
                                     const Exchange& exchange) override;
  void prepare_group(std::span<const Rank> members) override { way_->prepare_group(members); }

  void advance(std::vector<Completion>& done) override;
  [[nodiscard]] bool wants_look() const override { return host_.wants_look(); }
  [[nodiscard]] bool wants_polling() const override;
  [[nodiscard]] std::int64_t unclaimed() override;

private:
  struct Outgoing {
    PayloadSend payload;
    int tag = 0;
  };
  struct Waiting {
    PayloadReceive payload;
    int tag = 0;
  };
  /// State of the payloads that one rank sends us.
  struct Inbox {
    std::deque<Waiting> waiting;         ///< receives, in the order in which they were posted
    std::deque<Announcement> unclaimed;  ///< announced, not received yet
    std::unique_ptr<Announcement> next;  ///< its receive is posted
  };

  RequestId new_request();
  void begin_sends(Rank to);
  void listen(Rank from);
  void match(Rank from);
  void begin_receive(const Announcement& word, PayloadReceive payload);
  void take_host_message(const Completion& completion, std::vector<Completion>& done);

  Transport& host_;
  std::unique_ptr<PayloadBackend> way_;
  int tags_ = 0;
  std::uint32_t next_request_ = 0;
  std::unordered_map<Rank, std::deque<Outgoing>> outgoing_;  ///< not begun yet
  std::unordered_map<Rank, Inbox> inboxes_;
  std::unordered_map<RequestId, std::unique_ptr<Announcement>> announced_;  ///< that leave
  std::unordered_map<RequestId, Rank> listening_;
  std::vector<Completion> of_host_;
};

}  // namespace longhaul::comm
