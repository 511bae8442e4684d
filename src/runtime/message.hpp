#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "plan/plan.hpp"

namespace longhaul {

/// Says which message this is: the block that made it, the op that sends it, when. Goes on the wire
/// as it is (ranks of one run are of one architecture).
struct MessageId {
  std::uint32_t run = 0;  ///< how many plans were run before on these ranks
  std::int32_t iteration = 0;
  std::uint32_t send = 0;      ///< op id of the send
  std::uint32_t sequence = 0;  ///< place among the messages of its lane
  std::int32_t replica = 0;
  std::int32_t chunk = 0;
  std::int32_t microbatch = 0;
  std::uint8_t kind = 0, part = 0, parts = 1, reserved = 0;
  std::int64_t size_bytes = 0;  ///< nominal
  friend bool operator==(const MessageId&, const MessageId&) = default;
};

/// What goes ahead of a payload, so that the receiver can time the transfer by its own clock.
struct MessageHeader {
  MessageId id;
  std::uint32_t payload_bytes = 0;
  std::uint32_t waited_for_receiver = 0;  ///< grouped: the sender was there first
};
inline constexpr std::size_t kHeaderBytes = sizeof(MessageHeader);

/// Makes payloads and tells whether one is what it should be: an id, and behind it bytes that
/// follow from seed and id.
class Payloads {
public:
  /// `largest` is the cap on the bytes really sent; nominal sizes above it are cut.
  Payloads(std::uint64_t seed, Bytes largest);

  /// Bytes really sent for a message of that nominal size.
  [[nodiscard]] std::size_t bytes_for(Bytes nominal) const;
  void fill(const MessageId& id, std::span<std::byte> payload) const;

  enum class Verdict { right, wrong_message, corrupted };
  [[nodiscard]] Verdict check(const MessageId& expected, std::span<const std::byte> payload) const;

private:
  [[nodiscard]] const std::byte* pattern_of(const MessageId& id) const;
  std::uint64_t seed_;
  std::size_t largest_;
  std::vector<std::byte> pattern_;  ///< twice `largest_`: a message takes a window of it
};

/// The id of the message that `send` starts.
[[nodiscard]] MessageId message_id(const Plan& plan, OpId send, std::uint32_t run, int iteration);

}  // namespace longhaul
