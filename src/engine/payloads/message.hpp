#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "plan/plan.hpp"

namespace longhaul::engine {

/// Says what a payload is: which piece of which message, made by whom, when. The same on every leg
/// of its way. Goes on the wire as it is (ranks of one run are of one architecture).
struct PayloadId {
  std::uint32_t run = 0;  ///< how many plans were run before on these ranks
  std::int32_t iteration = 0;
  std::int32_t replica = 0;  ///< of its owner, whose block made it
  ChunkId chunk{};
  MicrobatchId microbatch{};
  std::uint8_t kind = 0, part = 0, parts = 1, reserved = 0;
  std::uint32_t piece = 0, pieces = 1;
  std::int64_t size_bytes = 0;  ///< nominal, of the piece
  friend bool operator==(const PayloadId&, const PayloadId&) = default;
};

/// The message before a payload: which payload it is and which op sends it, on this leg of its way.
/// The receiver times the transfer from it, by its own clock.
struct MessageHeader {
  PayloadId payload;
  std::uint32_t send = 0;      ///< op id of the send
  std::uint32_t sequence = 0;  ///< place among the messages of its lane
  std::int64_t lag_ns = 0;     ///< by how much later it would have been sent without credit
  std::uint32_t payload_bytes = 0;
  std::uint8_t leg = 0;                  ///< MessageLeg
  std::uint8_t waited_for_receiver = 0;  ///< grouped: the sender was there first
  std::uint8_t came_wrong = 0;           ///< relayed: the relay did not get it as it should be
  std::uint8_t reserved = 0;
};
inline constexpr std::size_t kHeaderBytes = sizeof(MessageHeader);
/// Do both name the same payload, send and leg?
[[nodiscard]] bool same_message(const MessageHeader& a, const MessageHeader& b);

/// Makes payloads and tells whether one is what it should be: an id, and after it bytes that
/// follow from seed and id.
class Payloads {
public:
  /// `largest` is the cap on the bytes really sent; nominal sizes above it are cut.
  Payloads(std::uint64_t seed, Bytes largest);

  /// Bytes really sent for a message of that nominal size.
  [[nodiscard]] std::size_t bytes_for(Bytes nominal) const;
  void fill(const PayloadId& id, std::span<std::byte> payload) const;

  enum class Verdict : std::uint8_t { right, wrong_message, corrupted };
  [[nodiscard]] Verdict check(const PayloadId& expected, std::span<const std::byte> payload) const;

  /// The bytes of payloads: after its id, one of that id holds those that begin at window(id).
  [[nodiscard]] std::span<const std::byte> pattern() const { return pattern_; }
  [[nodiscard]] std::size_t window(const PayloadId& id) const;

private:
  std::uint64_t seed_;
  std::size_t largest_;
  std::vector<std::byte> pattern_;  ///< twice `largest_`: a message takes a window of it
};

/// The id of the payload that `send` takes on its way, whichever rank made it.
[[nodiscard]] PayloadId payload_id(const Plan& plan, OpId send, std::uint32_t run, int iteration);
/// Header of the message that `send` starts; sizes and what happened are left to be filled in.
[[nodiscard]] MessageHeader message_header(const Plan& plan, OpId send, std::uint32_t run,
                                           int iteration);
/// "F(chunk 1, microbatch 3) of replica 0, piece 1 of 3, iteration 4". What came over the wire may
/// hold anything.
[[nodiscard]] std::string to_text(const PayloadId& id);

}  // namespace longhaul::engine
