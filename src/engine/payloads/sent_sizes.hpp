#pragma once

#include <cstddef>

#include "plan/plan.hpp"

namespace longhaul::engine {

/// Caps on the bytes that are really sent.
struct SendCaps {
  Bytes message{64 << 10};
  /// On what a rank keeps of a collective's vector: its messages are smaller in proportion.
  Bytes vector{16 << 20};
};

/// Payloads above this are made before their sends and compared after they have come, by a thread.
inline constexpr std::size_t kMadeAtOnce = std::size_t{256} << 10U;
/// Of these: in each lane, made before their sends begin;
inline constexpr std::uint32_t kMadeAhead = 2;
/// in each lane, that have not left: the next one waits, as it would on the wire;
inline constexpr std::uint32_t kMostUnsent = 2;
/// and on a rank, that have come and were not compared yet.
inline constexpr std::uint32_t kMostUncompared = 4;

/// The largest payload of messages and calls with that cap. Steps of collectives have numbers of
/// their own.
[[nodiscard]] Bytes largest_payload(const Plan& plan, Bytes cap);

/// What a rank keeps of the vector of a collective, so that none of its messages exceeds the cap.
[[nodiscard]] Bytes kept_vector(const SteppedCollective& stepped, const SendCaps& caps);

/// The largest message of a kind, as planned, and what is sent of it.
struct SentSize {
  Bytes sent, nominal;
  [[nodiscard]] bool is_whole() const { return sent == nominal; }
  SentSize& operator|=(const SentSize& other);  ///< the larger one
};
struct SentSizes {
  SentSize messages;     ///< of the pipeline
  SentSize collectives;  ///< their steps, or what members of one bring in one call
};
[[nodiscard]] SentSizes sent_sizes(const Plan& plan, const SendCaps& caps);

/// Memory of the host that payloads take at most on a rank while it plays the plan: what they are
/// made of, those on their way, those that relays keep, and the vectors of collectives.
[[nodiscard]] Bytes payload_memory(const Plan& plan, Rank rank, const SendCaps& caps);

}  // namespace longhaul::engine
