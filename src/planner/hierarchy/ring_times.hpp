#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "base/units.hpp"
#include "base/vocabulary.hpp"

namespace longhaul::planner {

/// The way from a member of a ring to the next one, which no other message holds.
struct RingLink {
  Bandwidth rate;
  Duration latency{};
};

/// When the members of a ring begin a collective, and when it is over there.
struct RingTimes {
  std::vector<Duration> begin;    ///< each member sends from then on; given
  std::vector<Duration> arrived;  ///< all has come that it gets
  std::vector<Duration> over;     ///< that, and its last message has left
};

/// Plays the ring of a gather, a scatter of sums or an all-reduce by a recurrence over its steps:
/// member i sends in step k when it has sent in step k - 1 and what member i - 1 sent then has
/// come. No message is an op: n members take O(n) memory and 2 n^2 updates at most. The same
/// nanoseconds as the simulator's for plan::steps_of() (RingPlayer.GivesTheSimulatorsTimes).
///
///     RingPlayer ring;
///     RingTimes times{{0ms, 2ms, 1ms}, {}, {}};
///     ring.play(CollectiveKind::all_reduce, 6_MB, links, times);  // one link for each member
class RingPlayer {
public:
  /// `kind`: all_gather, reduce_scatter or all_reduce of two members or more, `size` bytes in all.
  void play(CollectiveKind kind, Bytes size, std::span<const RingLink> links, RingTimes& times);
  /// Messages of all that was played.
  [[nodiscard]] std::int64_t messages() const { return messages_; }

private:
  using Nanoseconds = std::vector<std::int64_t>;
  enum class Phase : std::uint8_t { scatter, gather };
  void play_phase(Phase phase, std::int64_t longer);
  /// `offset`: the member of this number sends shard 0 in the step.
  void play_step(std::size_t offset, std::size_t longer);
  void send(std::size_t first, std::size_t end, const Nanoseconds& transfer);

  Nanoseconds short_, long_;           ///< transfers of a lesser and of a larger shard, by member
  Nanoseconds latency_;                ///< to the next member
  Nanoseconds sent_, arrived_, next_;  ///< by member; next_: arrivals of the step that is played
  std::int64_t messages_ = 0;
};

}  // namespace longhaul::planner
