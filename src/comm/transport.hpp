#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/clock.hpp"
#include "base/error.hpp"
#include "base/ids.hpp"
#include "base/vocabulary.hpp"
#include "cuda/lane_pace.hpp"

namespace longhaul::comm {

/// Names one unfinished operation of a transport.
enum class RequestId : std::uint32_t {};

/// The transport cannot go on: with the operation `request`, where it is known. Ends the run with
/// the watchdog's report.
class TransportError : public Error {
public:
  TransportError(std::optional<RequestId> request, const std::string& what)
      : Error{what, ExitCode::run_failed}, request_{request} {}
  [[nodiscard]] std::optional<RequestId> request() const { return request_; }

private:
  std::optional<RequestId> request_;
};

/// An operation that is done; `size_bytes` is what a receive got. Where the transport's device
/// stamped them, on this host's clock: `transferred`, when the bytes were there, and `over`, when
/// the lane was free again. Otherwise both are when it is seen.
struct Completion {
  RequestId request{};
  std::size_t size_bytes = 0;
  TimePoint over = kNever;
  TimePoint transferred = kNever;
};

/// A rank's input and output of a collective. Both memories belong to the caller.
struct Exchange {
  NumberType type = NumberType::i64;
  std::span<const std::byte> mine;
  std::span<std::byte> result;
};

/// Moves bytes between ranks without blocking. Messages of one (sender, receiver, tag) arrive in
/// order. Buffers stay the caller's and must live until their completion. One thread. For example,
/// a word to rank 1, until it has left:
///     const RequestId sent = transport.send(Rank{1}, tag, std::as_bytes(std::span{&word, 1}));
///     transport.ring_doorbell(Rank{1});
///     std::vector<Completion> done;
///     while (std::ranges::find(done, sent, &Completion::request) == done.end())
///       transport.advance(done);
class Transport {
public:
  Transport() = default;
  virtual ~Transport() = default;
  Transport(const Transport&) = delete;
  Transport& operator=(const Transport&) = delete;

  [[nodiscard]] virtual Rank self() const = 0;
  [[nodiscard]] virtual int ranks() const = 0;

  /// `tag` in [0, tags()).
  [[nodiscard]] virtual RequestId send(Rank to, int tag, std::span<const std::byte> data) = 0;
  [[nodiscard]] virtual RequestId receive(Rank from, int tag, std::span<std::byte> buffer) = 0;
  [[nodiscard]] virtual int tags() const = 0;
  /// Tells `to` that there is something for it: after one send or several.
  virtual void ring_doorbell(Rank to) = 0;

  /// The same for what a data plane carries, which may lie in a device's memory. A transfer into
  /// there begins when its sender's side has begun, not when the receive was posted.
  [[nodiscard]] virtual RequestId send_payload(Rank to, int tag, std::span<const std::byte> data,
                                               const cuda::LanePace& /*pace*/ = {}) {
    return send(to, tag, data);
  }
  [[nodiscard]] virtual RequestId receive_payload(Rank from, int tag, std::span<std::byte> buffer,
                                                  const cuda::LanePace& /*pace*/ = {}) {
    return receive(from, tag, buffer);
  }
  /// Does it hold lanes as LanePace says? Otherwise that is the caller's. It then takes a receive
  /// of a payload when its header is there, since only then the hold is known.
  [[nodiscard]] virtual bool holds_lanes() const { return false; }
  /// When the next of these holds ends; kNever: there is none.
  [[nodiscard]] virtual TimePoint next_event() const { return kNever; }

  /// A collective of a data plane on `members` (ascending; this rank is one). `exchange.mine` has
  /// as many numbers as the member brings, `exchange.result` as many as it gets, and merging is as
  /// facts_of(kind) says. Members begin their collectives of one group in one order.
  [[nodiscard]] virtual RequestId collective(CollectiveKind kind, std::span<const Rank> members,
                                             const Exchange& exchange) = 0;
  /// Collective over `members`: makes the group ready, so that its first use takes no longer.
  virtual void prepare_group(std::span<const Rank> members) = 0;

  /// Adds what has completed since the last call to `done`.
  virtual void advance(std::vector<Completion>& done) = 0;
  /// A receive was posted since the last look: what it waits for may have come before it, and rung
  /// then.
  [[nodiscard]] virtual bool wants_look() const = 0;
  /// Unfinished operations of ours that only further calls of advance() can finish: the caller
  /// looks again soon, for no doorbell may ring.
  [[nodiscard]] virtual bool wants_polling() const = 0;
  /// Messages that have come and have no receive.
  [[nodiscard]] virtual std::int64_t unclaimed() = 0;
};

}  // namespace longhaul::comm
