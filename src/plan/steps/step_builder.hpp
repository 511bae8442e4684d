#pragma once

#include <array>
#include <span>
#include <vector>

#include "plan/steps/collective_steps.hpp"

namespace longhaul::plan {

/// What a message waits for besides the one before it: all that came before the phase, or also all
/// that came in earlier steps of it.
enum class StepWaits : std::uint8_t { phase, steps };

/// Appends messages to the steps of a collective, piece by piece, and says what each waits for.
class StepBuilder {
public:
  StepBuilder(CollectiveSteps& steps, Bytes size) : steps_{steps}, size_{size} {}

  /// A member's messages of a stream follow each other. A piece has one, or two tracks that work on
  /// other items.
  void begin_stream(int piece, int track = 0);
  /// A member begins it when all that it was to get before is there.
  void begin_phase();
  /// `step` counts from the beginning of the phase and does not descend for one member.
  void send(int from, int to, std::span<const ItemRange> items, int step, StepWaits waits,
            bool adds);
  [[nodiscard]] int members() const { return steps_.members; }

private:
  struct Arrival {
    std::uint32_t message;
    int step;
  };
  [[nodiscard]] std::int64_t bytes_before(std::int64_t items) const;
  [[nodiscard]] Bytes size_of(std::span<const ItemRange> items) const;
  void add_arrivals(StepMessage& message, int before);
  [[nodiscard]] std::int32_t of_earlier_piece(int member) const;

  CollectiveSteps& steps_;
  Bytes size_;
  int piece_ = 0;
  int stream_ = -1;
  int phase_ = 0;                               ///< its first step
  int next_phase_ = 0;                          ///< the step after the last so far
  std::vector<std::vector<Arrival>> arrivals_;  ///< by member: those that none has waited for yet
  std::vector<std::int32_t> last_;              ///< by member: its last message of the stream
  int track_ = 0;
  int phase_number_ = -1;
  /// By track, piece, phase and member: its last message there; -1: none.
  std::array<std::vector<std::vector<std::vector<std::int32_t>>>, 2> left_;
};

}  // namespace longhaul::plan
