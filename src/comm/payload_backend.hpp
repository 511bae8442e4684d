#pragma once

#include <array>
#include <cstddef>
#include <span>
#include <vector>

#include "comm/transport.hpp"

namespace longhaul::comm {

/// A backend's message to the receiver's about a payload, in its own format.
using PayloadDetails = std::array<std::byte, 216>;

/// Goes ahead of every payload, as a message of the host: payloads of one pair of ranks begin in
/// the order of their announcements. Goes on the wire as it is.
struct Announcement {
  std::uint64_t size_bytes = 0;
  std::int32_t tag = 0;
  std::uint32_t lane = 0;  ///< of the sender
  PayloadDetails details{};
};

/// A payload that leaves, or that comes.
struct PayloadSend {
  RequestId request{};
  Rank to{};
  std::span<const std::byte> data;
  cuda::LanePace pace;
};
struct PayloadReceive {
  RequestId request{};
  Rank from{};
  std::span<std::byte> buffer;
  cuda::LanePace pace;
  LaneId lane_of_sender{};
};

/// Moves payloads from one device's memory into another's; PayloadTransport does the rest. No call
/// waits. Data may also lie in the host's memory. Completed operations hand back their request.
class PayloadBackend {
public:
  PayloadBackend() = default;
  virtual ~PayloadBackend() = default;
  PayloadBackend(const PayloadBackend&) = delete;
  PayloadBackend& operator=(const PayloadBackend&) = delete;

  /// Begins to send; `details` go to the receiver. False: not now (no room), ask again later.
  [[nodiscard]] virtual bool send(const PayloadSend& payload, PayloadDetails& details) = 0;
  /// The announcement has come: takes in `size` bytes of what was announced (`buffer` holds them).
  virtual void receive(const PayloadReceive& payload, std::size_t announced,
                       const PayloadDetails& details) = 0;
  /// Has a lane's payload to be taken in before the next one of that lane can be?
  [[nodiscard]] virtual bool keeps_order() const { return false; }
  /// As of Transport.
  virtual void collective(RequestId request, CollectiveKind kind, std::span<const Rank> members,
                          const Exchange& exchange) = 0;
  virtual void prepare_group(std::span<const Rank> members) = 0;

  /// Tags of the host's transport that the way needs for itself; use_tags() says from where on.
  [[nodiscard]] virtual int tags() const { return 0; }
  virtual void use_tags(int /*first*/) {}
  /// Was that host message the way's own? What it completes is added to `done`.
  [[nodiscard]] virtual bool host_done(const Completion& /*completion*/,
                                       std::vector<Completion>& /*done*/) {
    return false;
  }
  /// Adds what has completed.
  virtual void advance(std::vector<Completion>& done) = 0;
  /// Is anything under way?
  [[nodiscard]] virtual bool busy() const = 0;
  /// When the first hold that is under way ends; kNever: none does, or none is known to.
  [[nodiscard]] virtual TimePoint next_event() const { return kNever; }
};

}  // namespace longhaul::comm
