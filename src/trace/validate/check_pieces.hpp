#pragma once

#include <functional>
#include <vector>

#include "trace/validate/check_context.hpp"
#include "trace/validate/external_sort.hpp"

namespace longhaul::trace {

/// Facts of one side of a piece that the rules about pieces need.
struct PieceSide {
  std::int32_t rank, owner, chunk, microbatch, part, piece, pieces;
  std::int32_t from_device, to_device;  ///< of a send over the WAN
  enum class Role : std::uint8_t { scattered, sent, arrived, gathered } role;
  std::int64_t op, start_ns, end_ns, size_bytes;
};
/// By message, then time.
struct PieceOfMessageLess {
  bool operator()(const PieceSide& a, const PieceSide& b) const;
};
/// By relay and what passes through it, then time.
struct PieceOfRelayLess {
  bool operator()(const PieceSide& a, const PieceSide& b) const;
};

/// Checks the messages that travel in pieces, in one iteration: a message has each of its pieces
/// once, cut as evenly as can be (the remainder of bytes on the first); a relay sends over the WAN
/// each piece that was scattered to it, and gathers each that came over the WAN, of the same size
/// and no earlier than it has it, `slack_ns` aside.
class PieceCheck {
public:
  PieceCheck(const CheckContext& context, IterationKey key)
      : context_{context}, key_{key}, messages_{context.sort_bytes}, relays_{context.sort_bytes} {}

  /// `device_of` gives the device of a rank; -1 where it has no rows.
  void add(const TimelineRow& row, const std::function<std::int32_t(std::int32_t)>& device_of);
  [[nodiscard]] Diagnostics finish();

private:
  using Sides = std::vector<PieceSide>;
  void check_message(const Sides& sends);
  void check_sizes(const Sides& of_piece);
  void check_relay(const Sides& sides);
  void check_passed_on(const Sides& got, const Sides& passed, const char* from, const char* to);
  template <typename... Args>
  void wrong(const char* sort, const PieceSide& side, fmt::format_string<Args...> format,
             Args&&... args);

  const CheckContext& context_;
  IterationKey key_;
  ExternalSort<PieceSide, PieceOfMessageLess> messages_;
  ExternalSort<PieceSide, PieceOfRelayLess> relays_;
  Diagnostics findings_;
};

}  // namespace longhaul::trace
